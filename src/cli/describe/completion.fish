# fish completion for sandbox-run, made from its commands. Put it into ~/.config/fish/completions/sandbox-run.fish, or
# load it: sandbox-run completion fish | source
# Starts no program and expands nothing that was typed: all that it knows stands here.

# THE table: what stands behind each command of sandbox-run. Rows: command|sub|name||summary, command|opt|names|value|summary,
# command|arg|places|value|name. A value: text, file, directory, variable, command (a program with its arguments), words or
# list (with commas) and the words.
set -g __sandbox_run_table \
    # @table

# The fields of the rows of a kind that a command has, one row on a line: COMMAND KIND.
function __sandbox_run_rows
    string match -- "$argv[1]|$argv[2]|*" $__sandbox_run_table
end

# What a name, or a place among the arguments, takes: COMMAND KIND NAME. Fails if the command has none of the name.
function __sandbox_run_find
    for row in (__sandbox_run_rows $argv[1] $argv[2])
        set -l fields (string split -m 4 '|' -- $row)
        if contains -- $argv[3] (string split ' ' -- $fields[3])
            echo $fields[4]
            return
        end
    end
    return 1
end

# What is wanted at the cursor: the command, and a value, or options, or arguments: of a program; then yes if a
# subcommand may stand there as well.
function __sandbox_run_wanted
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -e words[1]
    set -l at ''
    set -l operand 0
    set -l dashes no
    set -l first yes
    set -l wanted ''
    set -l value
    for word in $words
        if test "$wanted" = arguments
            break
        else if test -n "$wanted"
            set wanted ''
        else if test $dashes = no; and test "$word" = --
            set dashes yes
        else if test $dashes = no; and string match -qr -- '^-.' $word
            set wanted (__sandbox_run_find "$at" opt $word); or set wanted ''
        else if test $dashes = no; and test -n "$at" -o $first = yes; and __sandbox_run_find "$at" sub $word >/dev/null
            set at (string trim -- "$at $word")
        else if test "$(__sandbox_run_find "$at" arg $operand)" = command
            set wanted arguments
        else
            set operand (math $operand + 1)
        end
        set first no
    end
    set -l subcommands no
    if test -n "$wanted"
    else if test $dashes = no; and string match -q -- '--*=*' "$typed"
        set wanted (__sandbox_run_find "$at" opt (string replace -r '=.*' '' -- $typed))
    else if test $dashes = no; and string match -q -- '-*' "$typed"
        set wanted options
    else
        test $dashes = no -a $operand = 0; and test -n "$at" -o $first = yes; and set subcommands yes
        # Nothing is completed where all of the words are taken.
        set wanted (__sandbox_run_find "$at" arg $operand; or __sandbox_run_find "$at" arg '*')
    end
    printf '%s\n' "$at" "$wanted" $subcommands
end

# Whether files are wanted; also as arguments of a program, because its own completion might run something.
function __sandbox_run_wants_files
    contains -- (__sandbox_run_wanted)[2] file command arguments
end

# The names of the rows of a kind, with what they are for: COMMAND KIND.
function __sandbox_run_names
    for row in (__sandbox_run_rows $argv)
        set -l fields (string split -m 4 '|' -- $row)
        for name in (string split ' ' -- $fields[3])
            printf '%s\t%s\n' $name $fields[5]
        end
    end
end

# Programs, and no functions or builtins: a sandbox has none.
function __sandbox_run_programs
    set -l typed (commandline -ct)
    test -n "$typed"; or return
    for file in $PATH/$typed*
        test -x $file -a ! -d $file; and string replace -r '.*/' '' -- $file
    end
end

# Everything but files.
function __sandbox_run_words
    set -l found (__sandbox_run_wanted)
    set -l kind (string split ' ' -- $found[2])
    set -l typed (commandline -ct)
    set -l prefix (string match -r -- '^(?:--[^=]*=)?' "$typed")
    test "$found[3]" = yes; and __sandbox_run_names "$found[1]" sub
    switch "$kind[1]"
        case options
            __sandbox_run_names "$found[1]" opt
        case words
            printf '%s\n' $prefix$kind[2..]
        case list
            set prefix (string match -r -- '^(?:--[^=]*=)?(?:.*,)?' "$typed")
            printf '%s\n' $prefix$kind[2..]
        case variable
            printf '%s\n' $prefix(set -nx)
        case command
            __sandbox_run_programs
        case directory
            __fish_complete_directories (commandline -ct)
    end
end

complete -c sandbox-run -f
complete -c sandbox-run -n __sandbox_run_wants_files -F
complete -c sandbox-run -a '(__sandbox_run_words)'
