#ifndef SANDBOX_RUN_CORE_CONFINEMENT_H_
#define SANDBOX_RUN_CORE_CONFINEMENT_H_

#include <linux/filter.h>

#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "core/child.h"
#include "core/confinement_spec.h"
#include "core/machine.h"
#include "core/slot.h"
#include "core/view_child.h"

namespace sandbox_run {

// What the commands of one sandbox share: its specification, its machine and its idle slots.
// Thread-safe: commands on several threads take and return slots.
class Confinement {
 public:
  explicit Confinement(ConfinementSpec spec);
  ~Confinement();

  // A clean slot: an idle one whose paths are still the same objects, or a new one.
  Result<std::unique_ptr<Slot>> Acquire();

  // Keeps an unused slot for the next Acquire().
  void Release(std::unique_ptr<Slot> slot);

  // Makes a cleaned slot ready for the next command. False: it is out of date and of no more use.
  // Also false while another process clears the cache: the next Acquire() reports that.
  bool Refresh(Slot& slot) const;

  // Removes what a command left in the slot. If that fails, the slot must not be used again.
  void Clean(Slot& slot) const;

  // Drops idle slots; later releases drop theirs too.
  void Close();

  const ConfinementSpec& spec() const { return spec_; }
  const std::shared_ptr<Machine>& machine() const { return machine_; }
  const sock_fprog* filter() const { return spec_.filter.empty() ? nullptr : &filter_; }
  // The namespaces of a command that runs in `slot`, in the order in which to enter them, and the
  // root on which it then has to stand; none without namespaces.
  std::vector<NamespaceEntry> NamespacesFor(const Slot& slot) const;
  std::optional<ObjectId> RootFor(const Slot& slot) const;
  // The root of the slot's view, O_PATH; none without a view.
  std::optional<int> ViewRootOf(const Slot& slot) const;

 private:
  bool WentMeanwhile(const Failure& failure) const;
  bool MayBeBlocked(const Failure& failure) const;
  Status CheckIsWhole(const Slot& slot) const;
  // `session`: receives the directories that were to be shared, whether or not it succeeds.
  Result<std::unique_ptr<Slot>> Build(std::shared_ptr<SessionDirectories>& session);
  // Makes a link to mount later, in a place that commands do not see.
  Result<std::string> MakeLink(const Slot& slot, const std::string& content, size_t number) const;
  // Makes an empty file to mount later, there too, unless there is one.
  Result<std::string> MakeEmptyFile(const Slot& slot, const char* name, mode_t mode) const;
  // What a layer is made of, with the options of its mount, which name that by descriptors.
  struct Layer {
    std::string options;
    std::vector<UniqueFd> opened;
    std::list<std::string> paths;  // the parts point into them
    std::vector<LayerPart> parts;
  };
  // `lowers`: the topmost first. Without `upper` nothing can be written to it.
  static Result<Layer> OpenLayer(const Slot& slot, const std::vector<std::string>& lowers,
                                 const std::string& upper, const std::string& work);
  // Makes the slot's mount namespace; `handles` receive the descriptors of rules inside it.
  Status BuildView(Slot& slot, std::vector<std::pair<const PathRuleSpec*, UniqueFd>>& handles);
  Status AddRules(Slot& slot, std::vector<std::pair<const PathRuleSpec*, UniqueFd>>& handles);
  Status Seed(Slot& slot) const;

  const ConfinementSpec spec_;
  const std::shared_ptr<Machine> machine_;
  sock_fprog filter_ = {};
  std::mutex mutex_;  // guards what follows
  bool closed_ = false;
  std::vector<std::unique_ptr<Slot>> idle_;
};

}  // namespace sandbox_run

#endif  // SANDBOX_RUN_CORE_CONFINEMENT_H_
