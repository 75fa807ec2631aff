#include "shell/shell_driver.h"

namespace sandbox_run {
namespace {

// Blanks and comments alone are no command, and a compound command needs one.
bool IsEmpty(std::string_view text) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos && line[first] != '#') return false;
    if (end == std::string_view::npos) return true;
    text.remove_prefix(end + 1);
  }
  return true;
}

// bash puts a here-document into a pipe if it fits, and else into a file in TMPDIR, where others
// could change it before it is read. The smallest pipe holds a page.
constexpr size_t kMaxHereText = 3 * 1024;

std::string Quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

// A backslash keeps aliases away and `builtin` functions; a function of that name goes first.
constexpr std::string_view kReportFields =
    "\\builtin pwd -L >&0;"
    " \\builtin printf '\\0' >&0; \\builtin pwd -P >&0;"
    " \\builtin printf '\\0' >&0; \\builtin export -p >&0;"
    " \\builtin printf '\\0' >&0; \\builtin declare -F >&0;"
    " \\builtin printf '\\0' >&0; \\builtin alias -p >&0;"
    " \\builtin printf '\\0' >&0; \\builtin trap -p >&0;"
    " \\builtin printf '\\0' >&0; \\builtin readonly -p >&0;"
    " \\builtin printf '\\0%s' \"${SHELLOPTS-}\" \"${BASHOPTS-}\" \"${PATH-}\" \"${CDPATH-}\""
    " \"${IFS+set}\" \"${IFS-}\" \"${GLOBIGNORE-}\" \"${PROMPT_COMMAND[*]-}\" \"${EXECIGNORE-}\""
    " \"${BASH_COMPAT-}\" \"${MAILCHECK+set}${MAILPATH+set}\" \"${PS0-}${PS1-}${PS2-}\""
    " \"${PS4-}\" >&0;";

// The nonce distinguishes it from output of commands.
std::string Mark(std::string_view nonce, std::string_view what) {
  std::string mark(1, '\0');
  mark += nonce;
  mark += what;
  mark += '\0';
  return mark;
}

}  // namespace

std::string ShellPreamble() {
  return "exec 4>&1 5>&2 >/dev/null 2>&1\n"
         "\\builtin set +o history +H; \\builtin unset HISTFILE HISTSIZE HISTFILESIZE MAILCHECK "
         "MAILPATH;"
         " PS1= PS2=; \\builtin shopt -u expand_aliases checkwinsize;"
         // Where calls are looked at, another signal may interrupt one before it is made.
         " \\builtin trap '\\builtin trap - INT; \\builtin kill -INT $$ || \\builtin kill -INT $$ "
         "||"
         " \\builtin kill -INT $$' URG\n";
}

std::string ShellTurn(std::string_view text, std::string_view assignments, std::string_view nonce,
                      int previous_status) {
  if (IsEmpty(text)) text = ":";
  // The last argument of a command is in `$_` during the next one, at last in the text: of those
  // here it is a colon, and not the nonce.
  const std::string name(nonce);
  std::string source;
  std::string status;
  if (previous_status != 0) {
    status = name + "(){ \\builtin unset -f " + name + "; \\builtin return " +
             std::to_string(previous_status) + "; }; " + name + " : || ";
  }
  std::string lines;
  // A list is run once all of it and its here-document has been read.
  std::string beginning = "\\builtin printf '\\0" + name + ",\\0' >&0; \\builtin :; ";
  if (text.size() <= kMaxHereText) {
    beginning += status;
    source = "{ ";
    source += text;
    source += "\n} </dev/null\n";
  } else {
    // All of it is one line of eval's: it is read as a whole, and its lines keep their numbers.
    lines += name + '=' + Quoted(text) + '\n';
    source = "\\builtin eval \"\\builtin unset -v " + name + "; \\builtin :; ";
    for (const char c : status) {
      if (c == '\\') source += '\\';
      source += c;
    }
    source += "{ $" + name + "\n} </dev/null\"\n";
  }
  lines += beginning;
  // bash takes these back when it has sourced the text.
  lines += assignments;
  lines += "\\builtin . /proc/self/fd/0 >&4 2>&5 4>&- 5>&- <<'";
  lines += name + "'\n" + source + name + '\n';
  lines += ShellReport(nonce);
  return lines;
}

std::string ShellReport(std::string_view nonce) {
  const std::string name(nonce);
  // A variable that no command can have made readonly, because none knows its name.
  std::string line = name + "=$?; { \\unset -f builtin; \\builtin printf '\\0%s\\0%s\\0' " + name +
                     " \"$" + name + "\" >&0; \\builtin unset -v " + name + "; ";
  line += kReportFields;
  line += " \\builtin printf '\\0%s.\\0' " + name;
  // A shell that cannot redirect any more (ulimit -n) can never report: its end says as much.
  line += " >&0; } >/dev/null 2>&1 || \\exit \"$" + name + "\"\n";
  return line;
}

std::string TurnIsRead(std::string_view nonce) { return Mark(nonce, ","); }
std::string ReportBegin(std::string_view nonce) { return Mark(nonce, ""); }
std::string ReportEnd(std::string_view nonce) { return Mark(nonce, "."); }

}  // namespace sandbox_run
