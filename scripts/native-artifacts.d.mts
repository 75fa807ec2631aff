/** For the tests: the types of native-artifacts.mjs. */
export interface NativeArtifact {
  readonly file: string;
  readonly isProgram: boolean;
}
export interface NativeTarget {
  readonly id: string;
  readonly package: string;
  readonly architecture: 'x64' | 'arm64';
  readonly libc: 'gnu' | 'musl';
  readonly machine: string;
  readonly allowedLibraries: RegExp;
}
export const NATIVE_ARTIFACTS: readonly NativeArtifact[];
export const SQLITE: { readonly file: string; readonly package: string };
export function sqliteFor(host: Pick<NativeTarget, 'architecture' | 'libc'>): string;
export const TARGETS: readonly NativeTarget[];
export function targetNamed(id: string): NativeTarget;
export function ownTarget(): NativeTarget;
