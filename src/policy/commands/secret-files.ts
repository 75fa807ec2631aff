/** Names that files of secrets have; those that come as an example hold none. */
const SECRET_FILES =
  /(?:^|[^\w.-])(?:\.env(?:\.[\w-]+)*|\.?netrc|\.npmrc|\.pypirc|\.pgpass|\.git-credentials|id_(?:rsa|dsa|ecdsa|ed25519)|[\w.-]+\.(?:pem|p12|pfx|jks|keystore|kdbx|key)|credentials(?:\.\w+)?|secrets?\.\w+)(?![\w-]|\.\w)/i;
const EXAMPLES = /\.(?:example|sample|template|dist|defaults?)$/i;

/** True if a word names a file of secrets, be it in the middle: `-d@.env`, `file=@id_rsa`. */
export function namesSecretFile(word: string): boolean {
  const found = SECRET_FILES.exec(word)?.[0];
  return found !== undefined && !EXAMPLES.test(found);
}
