# bash completion for sandbox-run, made from its commands. Load it in ~/.bashrc: source <(sandbox-run completion bash)
# Starts no program and expands nothing that was typed: all that it knows stands here.

# @walk

# Adds those of the words that begin as what was typed: WORD...
_sandbox_run_words() {
  local word
  for word; do
    if [[ $word == "$typed"* ]]; then COMPREPLY+=("$prefix$word"); fi
  done
}

# Adds the names of the rows of a kind.
_sandbox_run_names() {
  local row names
  for row in "${own[@]}"; do
    if [[ $row != "$1|"* ]]; then continue; fi
    row=${row#*|}
    read -ra names <<< "${row%%|*}"
    _sandbox_run_words "${names[@]}"
  done
}

_sandbox_run() {
  local typed=${COMP_WORDS[COMP_CWORD]} prefix= wanted subcommands word= i
  local -a own before=() kind
  # readline makes three words of --option=value.
  for ((i = 1; i <= COMP_CWORD; i++)); do
    if [[ $word == --*= || ( $word == --* && ${COMP_WORDS[i]} == = ) ]]; then
      word+=${COMP_WORDS[i]}
    else
      if ((i > 1)); then before+=("$word"); fi
      word=${COMP_WORDS[i]}
    fi
  done
  COMPREPLY=()
  _sandbox_run_walk "$word" "${before[@]}"
  if [[ $subcommands ]]; then _sandbox_run_names sub; fi
  if [[ $word == --*=* && $wanted ]]; then
    if [[ $typed == "$word" ]]; then prefix=${word%%=*}=; fi
    typed=${word#*=}
  fi
  read -ra kind <<< "$wanted"
  case ${kind[0]-} in
    options) _sandbox_run_names opt ;;
    words) _sandbox_run_words "${kind[@]:1}" ;;
    list)
      if [[ $typed == *,* ]]; then prefix+=${typed%,*},; fi
      typed=${typed##*,}
      _sandbox_run_words "${kind[@]:1}"
      ;;
    variable) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -e -P "$prefix" -- "$typed") ;;
    command)
      if [[ -z $typed || $typed == */* ]]; then
        compopt -o default
      else
        # Neither functions nor builtins: a sandbox has only programs.
        while read -r word; do
          if type -P -- "$word" > /dev/null; then COMPREPLY+=("$word"); fi
        done < <(compgen -c -- "$typed")
      fi
      ;;
    # Arguments of a program, too. Its own completion might run something, so they are files.
    arguments | file) compopt -o default ;;
    directory) compopt -o dirnames ;;
  esac
}

complete -F _sandbox_run sandbox-run
