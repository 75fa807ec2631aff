#compdef sandbox-run
# zsh completion for sandbox-run, made from its commands. Put it into a directory of $fpath as _sandbox-run, or load it
# in ~/.zshrc behind compinit: source <(sandbox-run completion zsh)
# Starts no program and expands nothing that was typed: all that it knows stands here.

# A program; its arguments are files, because its own completion might run something.
_sandbox-run_program() {
  _alternative 'commands:program:compadd -k commands' 'files:file:_files'
}

# @functions

if [[ $funcstack[1] == _sandbox-run ]]; then
  _sandbox-run "$@"
else
  compdef _sandbox-run sandbox-run
fi
