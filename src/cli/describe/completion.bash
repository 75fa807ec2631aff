# bash completion for sandbox-run, made from its commands. Load it in ~/.bashrc: source <(sandbox-run completion bash)
# Starts no program and expands nothing that was typed: all that it knows stands here.

_sandbox_run_command() {
  case $1 in
    # @commands
    *) subcommands=() options=() operands=() variadic= ;;
  esac
}

_sandbox_run_takes_value() {
  case $1 in
    # @values
    *) return 1 ;;
  esac
}

# Adds those of the words that begin as what was typed: PREFIX TYPED WORD...
_sandbox_run_words() {
  local prefix=$1 typed=$2 word
  shift 2
  for word; do
    if [[ $word == "$typed"* ]]; then COMPREPLY+=("$prefix$word"); fi
  done
}

# Completes a value: PREFIX TYPED KIND [WORD...]
_sandbox_run_value() {
  local prefix=$1 typed=$2 kind=$3 head= word
  shift 3
  case $kind in
    words) _sandbox_run_words "$prefix" "$typed" "$@" ;;
    list)
      if [[ $typed == *,* ]]; then head=${typed%,*},; fi
      _sandbox_run_words "$prefix$head" "${typed##*,}" "$@"
      ;;
    variable) mapfile -t COMPREPLY < <(compgen -e -P "$prefix" -- "$typed") ;;
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
    file) compopt -o default ;;
    directory) compopt -o dirnames ;;
  esac
}

_sandbox_run() {
  local typed=${COMP_WORDS[COMP_CWORD]} path= word i operand=0 dashes= rest= pending= variadic=
  local -a subcommands options operands value kind
  COMPREPLY=()
  _sandbox_run_command ''
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $rest ]]; then
      continue
    elif [[ ! $dashes && $word == -- ]]; then
      dashes=1
    elif [[ ! $dashes && $word == -?* ]]; then
      _sandbox_run_takes_value "$path:$word" || continue
      # readline makes three words of --option=value.
      if [[ ${COMP_WORDS[i + 1]} == = ]]; then
        ((i += 1))
        if ((i == COMP_CWORD)); then typed=; fi
      fi
      if ((i < COMP_CWORD)); then ((i += 1)); fi
      if ((i == COMP_CWORD)); then pending=1; fi
    elif [[ ! $dashes && ( $path || $i -eq 1 ) && " ${subcommands[*]} " == *" $word "* ]]; then
      path=${path:+$path }$word
      _sandbox_run_command "$path"
    elif [[ ${operands[operand]-} == command ]]; then
      rest=1
    else
      ((operand += 1))
    fi
  done
  if [[ $rest ]]; then
    # Arguments of a program. Its own completion might run something, so they are files.
    compopt -o default
    return
  elif [[ $pending ]]; then
    _sandbox_run_value '' "$typed" "${value[@]}"
    return
  elif [[ ! $dashes && $typed == --*=* ]]; then
    _sandbox_run_takes_value "$path:${typed%%=*}" && _sandbox_run_value "${typed%%=*}=" "${typed#*=}" "${value[@]}"
    return
  elif [[ ! $dashes && $typed == -* ]]; then
    _sandbox_run_words '' "$typed" "${options[@]}"
    return
  fi
  if [[ ! $dashes && ( $path || $COMP_CWORD -eq 1 ) ]]; then
    _sandbox_run_words '' "$typed" "${subcommands[@]}"
  fi
  if [[ $variadic ]] && ((operand >= ${#operands[@]})); then operand=$((${#operands[@]} - 1)); fi
  # Nothing is completed where all of the words are taken.
  if [[ ${operands[operand]-} ]]; then
    read -ra kind <<< "${operands[operand]}"
    _sandbox_run_value '' "$typed" "${kind[@]}"
  fi
}

complete -F _sandbox_run sandbox-run
