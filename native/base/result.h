#ifndef SANDBOX_RUN_BASE_RESULT_H_
#define SANDBOX_RUN_BASE_RESULT_H_

#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace sandbox_run {

// Why a step did not succeed: the step's name (a static string, stable, part of the public error
// surface), the errno it met, and the path it was about, if any.
struct Failure {
  const char* stage = "";
  int error = 0;
  std::string path;
};

// A value or the reason that there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Failure failure) : state_(std::move(failure)) {}

  bool ok() const { return std::holds_alternative<T>(state_); }
  T& value() { return std::get<T>(state_); }
  const T& value() const { return std::get<T>(state_); }
  Failure& failure() { return std::get<Failure>(state_); }
  const Failure& failure() const { return std::get<Failure>(state_); }

 private:
  std::variant<T, Failure> state_;
};

// Success, or the reason against it.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Failure failure) : failure_(std::move(failure)) {}

  bool ok() const { return !failure_.has_value(); }
  Failure& failure() { return *failure_; }

 private:
  std::optional<Failure> failure_;
};

// Too little of something for now: another attempt may go otherwise, and it says nothing of the
// host.
inline bool IsMomentary(int error) {
  return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE ||
         error == ENOBUFS;
}

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_BASE_RESULT_H_
