#include "process/shell_driver.h"

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

}  // namespace

std::string ShellPreamble() {
  return "exec 4>&1 5>&2 >/dev/null 2>&1\n"
         "\\builtin set +o history +H; \\builtin unset HISTFILE HISTSIZE HISTFILESIZE MAILCHECK "
         "MAILPATH;"
         " PS1= PS2=; \\builtin shopt -u expand_aliases checkwinsize;"
         " \\builtin trap '\\builtin trap - INT; \\builtin kill -INT $$' URG\n";
}

std::string ShellTurn(std::string_view text, std::string_view assignments, std::string_view nonce,
                      int previous_status) {
  if (IsEmpty(text)) text = ":";
  std::string lines;
  if (previous_status != 0) {
    lines += "__turn(){ \\builtin unset -f __turn; \\builtin return ";
    lines += std::to_string(previous_status);
    lines += "; }; __turn || ";
  }
  // bash takes these back when it has sourced the text.
  lines += assignments;
  lines += "\\builtin . /proc/self/fd/0 >&4 2>&5 4>&- 5>&- <<'";
  lines += nonce;
  lines += "'\n{ ";
  lines += text;
  lines += "\n} </dev/null\n";
  lines += nonce;
  lines += '\n';
  lines += ShellReport(nonce);
  return lines;
}

std::string ShellReport(std::string_view nonce) {
  std::string line = "{ __turn=$?; \\unset -f builtin; \\builtin printf '\\0%s\\0%s\\0' ";
  line += nonce;
  line += " \"$__turn\" >&0; \\builtin unset -v __turn; ";
  line += kReportFields;
  line += " \\builtin printf '\\0%s.\\0' ";
  line += nonce;
  line += " >&0; } >/dev/null 2>&1\n";
  return line;
}

std::string ReportBegin(std::string_view nonce) {
  std::string mark(1, '\0');
  mark += nonce;
  mark += '\0';
  return mark;
}

std::string ReportEnd(std::string_view nonce) {
  std::string mark(1, '\0');
  mark += nonce;
  mark += '.';
  mark += '\0';
  return mark;
}

}  // namespace sandbox_run
