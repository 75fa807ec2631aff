/** A file as text; of TypeScript, what a browser gets of it. See scripts/text-imports.mjs. */
declare module '*?text' {
  export const text: string;
}
