# THE table: what stands behind each command of sandbox-run. Rows: command|sub|name||summary, command|opt|names|value|summary,
# command|arg|places|value|name. A value: text, file, directory, variable, command (a program with its arguments), words or
# list (with commas) and the words.
_sandbox_run_table=( \
  # @table
)

# The rows of a command: in `own`, without its name.
_sandbox_run_enter() {
  local row
  own=()
  for row in "${_sandbox_run_table[@]}"; do
    if [[ $row == "$1|"* ]]; then own+=("${row#*|}"); fi
  done
}

# What a name, or a place among the arguments, takes: KIND NAME. In `value`; fails if the command has none of the name.
_sandbox_run_find() {
  local row names
  for row in "${own[@]}"; do
    names=${row#*|}
    if [[ $row == "$1|"* && " ${names%%|*} " == *" $2 "* ]]; then
      value=${names#*|}
      value=${value%%|*}
      return
    fi
  done
  value=
  return 1
}

# Finds out what is wanted behind some words: TYPED WORD... Sets `wanted` (a value, or options, arguments: of a program),
# `subcommands` (not empty: one of these may stand here as well) and `own`.
_sandbox_run_walk() {
  if [[ ${ZSH_VERSION-} ]]; then emulate -L ksh; fi
  local typed=$1 at= operand=0 dashes= first=1 value= word
  shift
  wanted= subcommands=
  _sandbox_run_enter ''
  for word; do
    if [[ $wanted == arguments ]]; then
      return
    elif [[ $wanted ]]; then
      wanted=
    elif [[ ! $dashes && $word == -- ]]; then
      dashes=1
    elif [[ ! $dashes && $word == -?* ]]; then
      if _sandbox_run_find opt "$word"; then wanted=$value; fi
    elif [[ ! $dashes && ( $at || $first ) ]] && _sandbox_run_find sub "$word"; then
      at=${at:+$at }$word
      _sandbox_run_enter "$at"
    elif _sandbox_run_find arg "$operand" && [[ $value == command ]]; then
      wanted=arguments
    else
      ((operand += 1))
    fi
    first=
  done
  if [[ $wanted ]]; then
    return
  elif [[ ! $dashes && $typed == --*=* ]]; then
    if _sandbox_run_find opt "${typed%%=*}"; then wanted=$value; fi
  elif [[ ! $dashes && $typed == -* ]]; then
    wanted=options
  else
    if [[ ! $dashes && ( $at || $first ) && $operand == 0 ]]; then subcommands=1; fi
    # Nothing is completed where all of the words are taken.
    _sandbox_run_find arg "$operand" || _sandbox_run_find arg '*'
    wanted=$value
  fi
}
