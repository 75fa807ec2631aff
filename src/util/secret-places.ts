/** Files and directories of a home that hold credentials, or what was typed. */
export const SECRET_PLACES: readonly string[] = [
  ...[
    '.ssh',
    '.aws',
    '.gnupg',
    '.kube',
    '.azure',
    '.netrc',
    '.git-credentials',
    '.pgpass',
    '.password-store',
  ],
  ...['.docker/config.json', '.config/gcloud', '.config/gh', '.config/op', '.npmrc', '.pypirc'],
  ...['.cargo/credentials', '.mozilla', '.bash_history', '.zsh_history'],
];

/** Whether a path, from a home on, is one of them, what lies in one, or the same with an ending (`.npmrc.old`). */
export function isSecretPlace(path: string): boolean {
  return SECRET_PLACES.some(
    (place) => path.startsWith(place) && /^(?:[/.]|$)/.test(path.slice(place.length)),
  );
}
