#compdef sandbox-run
# zsh completion for sandbox-run, made from its commands. Put it into a directory of $fpath as _sandbox-run, or load it
# in ~/.zshrc behind compinit: source <(sandbox-run completion zsh)
# Starts no program and expands nothing that was typed: all that it knows stands here.

# @walk

# Offers the names of the rows of a kind, with what they are for: KIND TITLE [OPTION OF _describe].
_sandbox_run_names() {
  local row name
  local -a fields described
  for row in $own; do
    fields=("${(@s:|:)row}")
    if [[ $fields[1] != $1 ]]; then continue; fi
    for name in ${=fields[2]}; do described+=("$name:$fields[4]"); done
  done
  _describe $3 -t $2 $2 described
}

_sandbox-run() {
  local wanted subcommands found=1
  local -a own kind
  _sandbox_run_walk "$PREFIX" "${(@)words[2,CURRENT-1]}"
  if [[ -n $subcommands ]]; then _sandbox_run_names sub subcommands && found=0; fi
  if [[ $wanted != options && $PREFIX == --*=* ]]; then compset -P 1 '*='; fi
  kind=(${=wanted})
  case $kind[1] in
    options) _sandbox_run_names opt options -o && found=0 ;;
    words) compadd -- $kind[2,-1] && found=0 ;;
    list)
      compset -P '*,'
      compadd -- $kind[2,-1] && found=0
      ;;
    variable) _parameters -g '*export*' && found=0 ;;
    command) _alternative 'commands:program:compadd -k commands' 'files:file:_files' && found=0 ;;
    # Arguments of a program, too. Its own completion might run something, so they are files.
    arguments | file) _files && found=0 ;;
    directory) _files -/ && found=0 ;;
  esac
  return found
}

if [[ $funcstack[1] == _sandbox-run ]]; then
  _sandbox-run "$@"
else
  compdef _sandbox-run sandbox-run
fi
