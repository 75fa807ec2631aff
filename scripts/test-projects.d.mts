export interface TestProject {
  readonly tests: readonly string[];
  readonly rooms: readonly string[];
}
export const PROJECTS: Readonly<Record<string, TestProject>>;
export const QUICK: readonly string[];
export const AS_BOTH: readonly string[];
export const AS_USER: readonly string[];
export function testFiles(): readonly string[];
export function isOneOf(file: string, beginnings: readonly string[]): boolean;
export function homeOf(file: string): string | undefined;
export function filesOf(name: string, isAskedFor: boolean): readonly string[];

/** The room that a file of src/ belongs to, by its path beneath src/; '' for a file of no house. */
export function roomOf(file: string): string;
