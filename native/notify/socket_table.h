#ifndef SANDBOX_RUN_NOTIFY_SOCKET_TABLE_H_
#define SANDBOX_RUN_NOTIFY_SOCKET_TABLE_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "notify/endpoint.h"
#include "sys/diag_socket.h"

namespace sandbox_run {

// Asks the kernel (sock_diag) which socket of one network namespace takes what is sent to an
// address. One question takes some microseconds, whatever the namespace has; the tables of /proc
// are walked from end to end, which takes milliseconds on a machine with much memory. Thread-safe.
class SocketTable {
 public:
  // `asking`: made in the namespace that is asked about.
  explicit SocketTable(std::shared_ptr<DiagSocket> asking) : asking_(std::move(asking)) {}
  // Of this process's own namespace.
  static SocketTable Own();

  // Looks for a TCP socket that listens, or a UDP socket that is not connected. Returns 0, with the
  // socket's own address in `own`: another one than `address` if it listens at several; ENOENT:
  // there is none; or the errno of the question.
  int Find(const Address& address, uint16_t port, bool is_udp, Address& own);

 private:
  const std::shared_ptr<DiagSocket> asking_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_NOTIFY_SOCKET_TABLE_H_
