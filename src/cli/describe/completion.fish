# fish completion for sandbox-run, made from its commands. Put it into ~/.config/fish/completions/sandbox-run.fish, or
# load it: sandbox-run completion fish | source
# Starts no program and expands nothing that was typed: all that it knows stands here.

# The subcommands of a command.
function __sandbox_run_subcommands
    switch "$argv"
        # @subcommands
    end
end

# Options with a value, whose value may be the next word.
function __sandbox_run_takes_value
    switch "$argv"
        # @values
            return 0
    end
    return 1
end

# Where a program stands among the words of a command: its place, counted from 0; nothing if it takes none.
function __sandbox_run_program_place
    switch "$argv"
        # @programs
    end
end

# Whether the cursor stands behind a command and at: options, subcommands, the operand of a number, or program arguments.
function __sandbox_run_at --argument-names wanted place
    set -l words (commandline -opc)
    set -e words[1]
    set -l path
    set -l operand 0
    set -l first yes
    set -l dashes no
    set -l arguments no
    set -l skip no
    for word in $words
        if test $arguments = yes
            continue
        else if test $skip = yes
            set skip no
        else if test $dashes = no -a "$word" = --
            set dashes yes
        else if test $dashes = no; and string match -q -- '-?*' "$word"
            __sandbox_run_takes_value "$path:$word"; and set skip yes
            set first no
        else if test $dashes = no; and begin
                test $first = yes; or set -q path[1]
            end; and contains -- "$word" (__sandbox_run_subcommands "$path")
            set path $path $word
        else if test "$operand" = "$(__sandbox_run_program_place "$path")"
            set arguments yes
        else
            set operand (math $operand + 1)
        end
    end
    test "$path" = "$wanted"; or return 1
    switch $place
        case arguments
            test $arguments = yes
        case options
            test $arguments = no -a $dashes = no
        case subcommands
            test $arguments = no -a $dashes = no -a $operand = 0
            and begin
                set -q path[1]; or test (count $words) = 0
            end
        case '*'
            test $arguments = no -a $operand = $place
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

complete -c sandbox-run -f
# @completions
