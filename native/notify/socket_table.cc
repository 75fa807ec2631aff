#include "notify/socket_table.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace sandbox_run {
namespace {

constexpr unsigned kTcpTakes = 0x0a, kUdpTakes = 0x07;  // TCP_LISTEN, TCP_CLOSE
constexpr Address kMappedV4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

SocketTable SocketTable::Own() {
  return SocketTable(std::make_shared<DiagSocket>(
      UniqueFd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG))));
}

int SocketTable::Find(const Address& address, uint16_t port, bool is_udp, Address& own) {
  if (!asking_->fd.valid()) return EBADF;
  const bool is_v4 = memcmp(address.data(), kMappedV4.data(), 12) == 0;
  const unsigned wanted = is_udp ? kUdpTakes : kTcpTakes;
  struct {
    nlmsghdr head;
    inet_diag_req_v2 question;
  } message = {};
  message.head.nlmsg_len = sizeof(message);
  message.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  message.head.nlmsg_flags = NLM_F_REQUEST;
  message.question.sdiag_family = is_v4 ? AF_INET : AF_INET6;
  message.question.sdiag_protocol = is_udp ? IPPROTO_UDP : IPPROTO_TCP;
  message.question.idiag_states = 1u << wanted;
  inet_diag_sockid& id = message.question.id;
  // Of UDP the kernel takes the destination for the socket's own side (udp_dump_one).
  (is_udp ? id.idiag_dport : id.idiag_sport) = htons(port);
  auto* const place = is_udp ? id.idiag_dst : id.idiag_src;
  if (is_v4) {
    memcpy(place, address.data() + 12, 4);
  } else {
    memcpy(place, address.data(), 16);
  }
  id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  const std::lock_guard lock(asking_->mutex);
  message.head.nlmsg_seq = ++asking_->last_question;
  if (send(asking_->fd.get(), &message, sizeof(message), 0) != sizeof(message)) return errno;
  alignas(nlmsghdr) char answer[4096];
  const auto* head = reinterpret_cast<const nlmsghdr*>(answer);
  ssize_t size = 0;
  // The answer is there when the question is sent. One that nobody took, for want of memory, is
  // another question's.
  do {
    size = recv(asking_->fd.get(), answer, sizeof(answer), MSG_DONTWAIT);
    if (size < static_cast<ssize_t>(sizeof(nlmsghdr))) return size < 0 ? errno : EPROTO;
  } while (head->nlmsg_seq != message.head.nlmsg_seq);
  if (head->nlmsg_type == NLMSG_ERROR) {
    nlmsgerr error;
    memcpy(&error, NLMSG_DATA(head), sizeof(error));
    return error.error < 0 ? -error.error : EPROTO;
  }
  inet_diag_msg found;
  if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
      size < static_cast<ssize_t>(NLMSG_LENGTH(sizeof(found))))
    return EPROTO;
  memcpy(&found, NLMSG_DATA(head), sizeof(found));
  if (found.idiag_state != wanted) return ENOENT;
  own = kMappedV4;
  if (found.idiag_family == AF_INET) {
    memcpy(own.data() + 12, found.id.idiag_src, 4);
  } else {
    memcpy(own.data(), found.id.idiag_src, 16);
  }
  return 0;
}

}  // namespace sandbox_run
