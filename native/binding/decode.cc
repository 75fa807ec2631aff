#include "binding/decode.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "binding/encode.h"
#include "binding/running_commands.h"
#include "sys/files.h"

namespace sandbox_run {
namespace {

std::string Text(const Napi::Object& object, const char* name) {
  return object.Get(name).As<Napi::String>().Utf8Value();
}
std::string Path(const Napi::Object& object, const char* name) {
  return DecodePath(object.Get(name));
}
bool Flag(const Napi::Object& object, const char* name) {
  return object.Get(name).ToBoolean().Value();
}
std::vector<sock_filter> Filter(const Napi::Value& value) {
  const auto bytes = value.As<Napi::Uint8Array>();
  std::vector<sock_filter> filter(bytes.ByteLength() / sizeof(sock_filter));
  memcpy(filter.data(), bytes.Data(), filter.size() * sizeof(sock_filter));
  return filter;
}
template <typename Each>
void ForEach(const Napi::Value& value, Each each) {
  const Napi::Array array = value.As<Napi::Array>();
  for (uint32_t i = 0; i < array.Length(); ++i) each(array.Get(i));
}
ViewStepKind DecodeStepKind(const std::string& name) {
  if (name == "bind") return ViewStepKind::kBind;
  if (name == "bind-link") return ViewStepKind::kBindLink;
  if (name == "devpts") return ViewStepKind::kDevpts;
  if (name == "symlink") return ViewStepKind::kSymlink;
  if (name == "emptied") return ViewStepKind::kEmptied;
  if (name == "layer") return ViewStepKind::kLayer;
  if (name == "masked-file") return ViewStepKind::kMaskedFile;
  return ViewStepKind::kBetween;
}

AddressRange DecodeRange(const Napi::Object& object) {
  AddressRange range;
  range.address = DecodeAddress(object.Get("bytes"));
  // What is no number of bits is a range of one address, and so speaks of the least.
  const int64_t bits = object.Get("bits").As<Napi::Number>().Int64Value();
  range.bits = bits >= 0 && bits <= 128 ? static_cast<int>(bits) : 128;
  return range;
}

Result<std::shared_ptr<NetworkGate>> DecodeNetwork(const Napi::Object& object,
                                                   std::shared_ptr<OwnNetwork> own) {
  std::vector<AddressRange> apart;
  ForEach(object.Get("apart"), [&](const Napi::Value& value) {
    apart.push_back(DecodeRange(value.As<Napi::Object>()));
  });
  std::vector<UnixRow> sockets;
  ForEach(object.Get("sockets"), [&](const Napi::Value& value) {
    const Napi::Object row = value.As<Napi::Object>();
    sockets.push_back({Text(row, "path"), Text(row, "named"), Text(row, "rule")});
  });
  Result<UnixTable> table = UnixTable::Open(std::move(sockets));
  if (!table.ok()) return table.failure();
  auto gate =
      std::make_shared<NetworkGate>(DecodeAddressRows(object.Get("addresses")), std::move(apart),
                                    std::move(own), Flag(object, "looksInside"));
  gate->sockets = std::move(table.value());
  if (const Napi::Value value = object.Get("placeholders"); value.IsObject())
    gate->placeholders = DecodeRange(value.As<Napi::Object>());
  return gate;
}

constexpr int kStdioNull = -1;
constexpr int kStdioCapture = -2;

// The arguments of launch(), in the order of contract.ts. They are positional because properties
// cost more than the launch.
enum Argument : size_t {
  kConfinement,
  kOnEvent,
  kProgram,
  kArgv,
  kEnvironment,
  kCwd,
  kStdin,
  kStdout,
  kStderr,
  kOutputLimit,
  kTimeoutMs,
  kKillGraceMs,
  kStreamOutput,
  kInput,
  kExtras,
};

// False: an exception with the failure is pending.
bool CopyDescriptor(const Napi::Env& env, int fd, UniqueFd& copy) {
  Result<UniqueFd> made = AboveStdio(fd, "stdio");
  if (made.ok()) {
    copy = std::move(made.value());
    return true;
  }
  ThrowFailure(env, made.failure());
  return false;
}

// Nothing may be asked of Node-API while an exception is pending: it would end the process.
bool DecodeOutputExtras(const Napi::Object& extras, StreamsSpec& streams) {
  if (const Napi::Value head = extras.Get("headBytes"); head.IsNumber()) {
    streams.head_limit = Unsigned(head);
  }
  streams.combined = Flag(extras, "combined");
  if (const Napi::Value spill = extras.Get("spill"); spill.IsArray()) {
    const Napi::Array files = spill.As<Napi::Array>();
    for (uint32_t i = 0; i < 2; ++i) {
      const int fd = files.Get(i).As<Napi::Number>().Int32Value();
      if (fd >= 0 && !CopyDescriptor(extras.Env(), fd, streams.spill[i])) return false;
    }
    streams.spill_limit = Unsigned(extras.Get("spillLimit"));
  }
  return true;
}

// What is seldom asked for: NativeLaunchExtras in contract.ts, or undefined.
void DecodeExtras(const Napi::Value& value, CommandSpec& spec, bool& is_shell) {
  if (!value.IsObject()) return;
  const Napi::Object extras = value.As<Napi::Object>();
  if (const Napi::Value pty = extras.Get("pty"); pty.IsObject()) {
    const Napi::Object size = pty.As<Napi::Object>();
    spec.streams.terminal = DecodeTerminalSize(size.Get("cols"), size.Get("rows"));
  }
  if (!DecodeOutputExtras(extras, spec.streams)) return;
  spec.background = Flag(extras, "background");
  spec.tells_left_running = Flag(extras, "tellsLeftRunning");
  if (const Napi::Value idle = extras.Get("idleTimeoutMs"); idle.IsNumber()) {
    spec.idle_timeout = std::chrono::milliseconds(Unsigned(idle));
  }
  is_shell = Flag(extras, "shell");
  if (const Napi::Value filter = extras.Get("addedFilter"); filter.IsTypedArray()) {
    spec.added_filter = Filter(filter);
  }
}

// Reserves the descriptors that the command needs, before any is used for it.
std::optional<DescriptorRoom> TakeRoom(const Napi::CallbackInfo& info, bool is_supervised) {
  // A terminal, a channel for turns, files for output: the most at one time.
  constexpr size_t kForExtras = 8;
  // A supervisor's own; those that it keeps for sockets it counts itself (KeptDescriptors).
  constexpr size_t kForSupervisor = 6;
  size_t own = is_supervised ? kForSupervisor : 0;
  bool is_long_lived = false;
  for (size_t i = 0; i < 3; ++i) {
    const int fd = info[kStdin + i].As<Napi::Number>().Int32Value();
    if (fd >= 0) ++own;
    // Streams that a slow reader may keep open for long.
    is_long_lived = is_long_lived || fd > 2;
  }
  if (info[kExtras].IsObject()) {
    const Napi::Object extras = info[kExtras].As<Napi::Object>();
    own += kForExtras;
    is_long_lived = is_long_lived || Flag(extras, "background") || Flag(extras, "shell");
  }
  const auto holder =
      is_long_lived ? DescriptorRoom::Holder::kLongLived : DescriptorRoom::Holder::kCommand;
  DescriptorRoom::Refusal refusal{};
  std::optional<DescriptorRoom> room = DescriptorRoom::Take(holder, own, refusal);
  if (room) return room;
  const bool waits = refusal == DescriptorRoom::Refusal::kWait;
  ThrowFailure(info.Env(), {"room", waits ? EAGAIN : EMFILE, ""});
  return std::nullopt;
}

}  // namespace

std::vector<std::string> Texts(const Napi::Value& value) {
  std::vector<std::string> result;
  ForEach(value,
          [&](const Napi::Value& item) { result.push_back(item.As<Napi::String>().Utf8Value()); });
  return result;
}

std::string DecodePath(const Napi::Value& value) {
  std::string text = value.As<Napi::String>().Utf8Value();
  // What is written in place of half of a pair; where there is none, no byte was one.
  if (text.find("\xEF\xBF\xBD") == std::string::npos) return text;
  const std::u16string units = value.As<Napi::String>().Utf16Value();
  const auto is_high = [](char16_t unit) { return unit >= 0xD800 && unit < 0xDC00; };
  const auto is_low = [](char16_t unit) { return unit >= 0xDC00 && unit < 0xE000; };
  std::string bytes;
  const auto put = [&bytes](uint32_t byte) { bytes.push_back(static_cast<char>(byte)); };
  for (size_t i = 0; i < units.size(); ++i) {
    uint32_t character = units[i];
    if (is_high(units[i]) && i + 1 < units.size() && is_low(units[i + 1])) {
      character = 0x10000 + ((character - 0xD800) << 10) + (units[++i] - 0xDC00u);
    } else if (character >= 0xDC80 && character <= 0xDCFF) {
      put(character - 0xDC00);
      continue;
    } else if (is_high(units[i]) || is_low(units[i])) {
      character = 0xFFFD;
    }
    if (character < 0x80) {
      put(character);
      continue;
    }
    const int more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3;
    constexpr unsigned kMarks[] = {0, 0xC0, 0xE0, 0xF0};
    put(kMarks[more] | character >> (6 * more));
    for (int rest = more - 1; rest >= 0; --rest) put(0x80 | (character >> (6 * rest) & 0x3F));
  }
  return bytes;
}

std::vector<std::string> DecodePaths(const Napi::Value& value) {
  std::vector<std::string> result;
  ForEach(value, [&](const Napi::Value& item) { result.push_back(DecodePath(item)); });
  return result;
}

Address DecodeAddress(const Napi::Value& value) {
  Address address = {};
  const auto bytes = value.As<Napi::Uint8Array>();
  memcpy(address.data(), bytes.Data(), std::min(bytes.ByteLength(), address.size()));
  return address;
}

Inside DecodeInside(const Napi::Value& value) {
  const std::string inside = value.ToString();
  if (inside.empty()) return Inside::kAnything;
  return inside == "http" ? Inside::kHttp : Inside::kTls;
}

std::vector<AddressRow> DecodeAddressRows(const Napi::Value& value) {
  std::vector<AddressRow> rows;
  ForEach(value, [&](const Napi::Value& item) {
    const Napi::Object object = item.As<Napi::Object>();
    AddressRow row;
    row.range = DecodeRange(object);
    row.first_port = static_cast<uint16_t>(Unsigned(object.Get("first")));
    row.last_port = static_cast<uint16_t>(Unsigned(object.Get("last")));
    if (Flag(object, "udp")) row.protocol = Protocol::kUdp;
    row.allows = Flag(object, "allows");
    row.inside = DecodeInside(object.Get("inside"));
    row.rule = Text(object, "rule");
    rows.push_back(std::move(row));
  });
  return rows;
}

uint64_t Unsigned(const Napi::Value& value) {
  if (value.IsBigInt()) {
    bool lossless = false;
    return value.As<Napi::BigInt>().Uint64Value(&lossless);
  }
  return static_cast<uint64_t>(value.As<Napi::Number>().Int64Value());
}

TerminalSize DecodeTerminalSize(const Napi::Value& columns, const Napi::Value& rows) {
  const auto decode = [](const Napi::Value& value) {
    return static_cast<uint16_t>(value.As<Napi::Number>().Uint32Value());
  };
  return {decode(columns), decode(rows)};
}

IndexSpec DecodeIndex(const Napi::Object& object) {
  IndexSpec spec;
  spec.root = Path(object, "root");
  spec.names = Texts(object.Get("names"));
  spec.suffixes = Texts(object.Get("suffixes"));
  spec.git_names = Texts(object.Get("gitNames"));
  if (const Napi::Value wholes = object.Get("wholes"); wholes.IsArray())
    spec.wholes = Texts(wholes);
  spec.links = Flag(object, "links");
  spec.max_directories = Unsigned(object.Get("maxDirectories"));
  if (const Napi::Value beside = object.Get("beside"); beside.IsObject()) {
    spec.beside = DecodePaths(beside.As<Napi::Object>().Get("roots"));
    spec.max_beside = Unsigned(beside.As<Napi::Object>().Get("maxDirectories"));
  }
  return spec;
}

Observed DecodeObserved(const std::string& name) {
  if (name == "changes") return Observed::kChanges;
  if (name == "everything") return Observed::kEverything;
  if (name == "uses") return Observed::kUses;
  return Observed::kNothing;
}

ConfinementSpec DecodeConfinement(const Napi::Object& object) {
  ConfinementSpec spec;
  const Napi::Object landlock = object.Get("landlock").As<Napi::Object>();
  spec.landlock.handled_fs = Unsigned(landlock.Get("handledFs"));
  spec.landlock.handled_net = Unsigned(landlock.Get("handledNet"));
  spec.landlock.scoped = Unsigned(landlock.Get("scoped"));
  ForEach(object.Get("rules"), [&](const Napi::Value& value) {
    const Napi::Object rule = value.As<Napi::Object>();
    spec.rules.push_back({Path(rule, "path"), Unsigned(rule.Get("directoryAccess")),
                          Unsigned(rule.Get("fileAccess")), Flag(rule, "required"),
                          Flag(rule, "inView")});
  });
  spec.filter = Filter(object.Get("filter"));
  if (const Napi::Value value = object.Get("namespaces"); value.IsObject()) {
    const Napi::Object namespaces = value.As<Napi::Object>();
    NamespaceSpec decoded;
    decoded.user = Flag(namespaces, "user");
    decoded.network = Flag(namespaces, "network");
    decoded.ipc = Flag(namespaces, "ipc");
    ForEach(namespaces.Get("view"), [&](const Napi::Value& item) {
      const Napi::Object step = item.As<Napi::Object>();
      decoded.view.push_back({DecodeStepKind(Text(step, "kind")),
                              Path(step, "source"),
                              Path(step, "target"),
                              Flag(step, "readOnly"),
                              Flag(step, "allowDevices"),
                              Flag(step, "required"),
                              Flag(step, "watched"),
                              Flag(step, "fromView"),
                              Flag(step, "refused"),
                              {},
                              "",
                              ""});
      if (const Napi::Value value = step.Get("layer"); value.IsObject()) {
        const Napi::Object layer = value.As<Napi::Object>();
        decoded.view.back().lower = DecodePaths(layer.Get("lower"));
        decoded.view.back().upper = Path(layer, "upper");
        decoded.view.back().work = Path(layer, "work");
      }
    });
    spec.namespaces = std::move(decoded);
  }
  ForEach(object.Get("limits"), [&](const Napi::Value& value) {
    const Napi::Object limit = value.As<Napi::Object>();
    const uint64_t bound = Unsigned(limit.Get("value"));
    spec.limits.push_back({limit.Get("resource").As<Napi::Number>().Int32Value(), bound, bound});
  });
  const Napi::Object tree = object.Get("treeLimits").As<Napi::Object>();
  spec.tree_limits.memory = Unsigned(tree.Get("memoryBytes"));
  spec.tree_limits.processes = Unsigned(tree.Get("processes"));
  spec.tree_limits.cpu_ms = Unsigned(tree.Get("cpuMs"));
  spec.tree_limits.tmp_bytes = Unsigned(tree.Get("tmpBytes"));
  spec.idle_timeout = std::chrono::milliseconds(Unsigned(tree.Get("idleTimeoutMs")));
  spec.cgroup_parent = Text(tree, "cgroupParent");
  spec.cgroup_clone = Flag(tree, "cgroupClone");
  spec.umask = object.Get("umask").As<Napi::Number>().Int32Value();
  spec.temporary_parent = Text(object, "temporaryParent");
  spec.memory_parent = Text(object, "memoryParent");
  spec.slot_directories = Texts(object.Get("slotDirectories"));
  spec.told_directories = Texts(object.Get("toldDirectories"));
  ForEach(object.Get("seedFiles"), [&](const Napi::Value& value) {
    const Napi::Object seed = value.As<Napi::Object>();
    spec.seed_files.push_back({Text(seed, "path"), Text(seed, "content")});
  });
  if (const Napi::Value value = object.Get("cache"); value.IsObject()) {
    const Napi::Object cache = value.As<Napi::Object>();
    spec.cache = CacheSpec{Text(cache, "directory"), Text(cache, "lock")};
    ForEach(cache.Get("links"), [&](const Napi::Value& item) {
      const Napi::Object link = item.As<Napi::Object>();
      spec.seed_links.push_back({Text(link, "path"), Text(link, "content")});
    });
  }
  ForEach(object.Get("copies"), [&](const Napi::Value& value) {
    const Napi::Object copy = value.As<Napi::Object>();
    CopySpec one{Path(copy, "source"), Path(copy, "path"), "", ""};
    if (const Napi::Value value = copy.Get("preface"); value.IsObject()) {
      const Napi::Object preface = value.As<Napi::Object>();
      one.preface = Path(preface, "file");
      one.unless = Text(preface, "unless");
    }
    spec.copies.push_back(std::move(one));
  });
  if (const Napi::Value other = object.Get("machineOf"); other.IsExternal()) {
    spec.machine = (*other.As<Napi::External<ConfinementRef>>().Data())->machine();
  }
  spec.shares_directories = Flag(object, "sharesDirectories");
  ForEach(object.Get("slotVariables"), [&](const Napi::Value& value) {
    const Napi::Object variable = value.As<Napi::Object>();
    spec.slot_variables.push_back({Text(variable, "name"), Text(variable, "path")});
  });
  spec.without_scope = Text(object, "processTree") == "subreaper";
  return spec;
}

// That of the confinement whose machine is shared, if it has one.
Result<std::shared_ptr<OwnNetwork>> OwnNetworkOf(const Napi::Object& object) {
  if (const Napi::Value other = object.Get("machineOf"); other.IsExternal()) {
    const auto& guests = other.As<Napi::External<ConfinementRef>>().Data()->guests;
    if (guests->network != nullptr) return guests->network->own;
  }
  return OwnNetwork::Make(Text(object, "temporaryParent"));
}

GuestSpec DecodeGuests(const Napi::Object& object) {
  GuestSpec spec;
  if (const Napi::Value index = object.Get("index"); index.IsExternal()) {
    spec.index = *index.As<Napi::External<std::shared_ptr<TreeIndex>>>().Data();
  }
  if (const Napi::Value value = object.Get("setUidLauncher"); value.IsObject()) {
    const Napi::Object launcher = value.As<Napi::Object>();
    LauncherSpec decoded;
    decoded.program = Text(launcher, "program");
    decoded.arguments = Texts(launcher.Get("arguments"));
    decoded.settings = Text(launcher, "settings");
    ForEach(launcher.Get("conditional"), [&](const Napi::Value& item) {
      const Napi::Object one = item.As<Napi::Object>();
      decoded.conditional.push_back({Text(one, "path"), Text(one, "settings")});
    });
    decoded.slot_setting = Text(launcher, "slotSetting");
    decoded.foreground_settings = Text(launcher, "foregroundSettings");
    decoded.deadline_option = Text(launcher, "deadlineOption");
    decoded.env = Text(launcher, "env");
    if (const Napi::Value kept = launcher.Get("keptOpen"); kept.IsArray()) {
      decoded.kept_open = Texts(kept);
    }
    spec.launcher = std::move(decoded);
  }
  if (const Napi::Value value = object.Get("network"); value.IsObject()) {
    Result<std::shared_ptr<OwnNetwork>> own = OwnNetworkOf(object);
    Result<std::shared_ptr<NetworkGate>> gate =
        own.ok() ? DecodeNetwork(value.As<Napi::Object>(), std::move(own.value()))
                 : Result<std::shared_ptr<NetworkGate>>(own.failure());
    if (gate.ok()) {
      spec.network = std::move(gate.value());
    } else {
      ThrowFailure(object.Env(), gate.failure());
      return spec;
    }
  }
  spec.group_modes = object.Get("groupModes").ToBoolean();
  spec.own_processes = object.Get("ownProcesses").ToBoolean();
  const Napi::Object sockets = object.Get("refusedSockets").As<Napi::Object>();
  spec.refused_sockets = {sockets.Get("inet").ToBoolean(), sockets.Get("unix").ToBoolean()};
  spec.exit_tracing = object.Get("exitTracing").ToBoolean();
  spec.observed = DecodeObserved(Text(object, "observed"));
  return spec;
}

std::optional<CommandSpec> DecodeCommand(const Napi::CallbackInfo& info, bool is_supervised,
                                         bool& is_shell) {
  const Napi::Env env = info.Env();
  CommandSpec spec;
  spec.room = TakeRoom(info, is_supervised);
  if (!spec.room) return std::nullopt;
  spec.program = info[kProgram].As<Napi::String>();
  spec.argv = Texts(info[kArgv]);
  const auto environment = info[kEnvironment].As<Napi::Uint8Array>();
  spec.env.assign(reinterpret_cast<const char*>(environment.Data()), environment.ByteLength());
  spec.cwd = info[kCwd].As<Napi::String>();
  for (size_t i = 0; i < 3; ++i) {
    const int value = info[kStdin + i].As<Napi::Number>().Int32Value();
    if (value == kStdioNull) continue;
    if (value == kStdioCapture) {
      spec.streams.stdio[i].mode = StdioSpec::Mode::kCapture;
      continue;
    }
    spec.streams.stdio[i].mode = StdioSpec::Mode::kFd;
    if (!CopyDescriptor(env, value, spec.streams.stdio[i].fd)) return std::nullopt;
  }
  if (info[kInput].IsTypedArray()) {
    const auto bytes = info[kInput].As<Napi::Uint8Array>();
    spec.streams.input.assign(reinterpret_cast<const char*>(bytes.Data()), bytes.ByteLength());
  }
  spec.streams.stream_output = info[kStreamOutput].ToBoolean();
  spec.streams.output_limit = Unsigned(info[kOutputLimit]);
  spec.timeout = std::chrono::milliseconds(Unsigned(info[kTimeoutMs]));
  spec.kill_grace = std::chrono::milliseconds(Unsigned(info[kKillGraceMs]));
  is_shell = false;
  DecodeExtras(info[kExtras], spec, is_shell);
  // A value of the wrong type: what was decoded in its stead must not run.
  if (env.IsExceptionPending()) return std::nullopt;
  return spec;
}

}  // namespace sandbox_run
