// For builds that have to load with older C libraries than the compiler's own, and with musl: the
// compiler's unwinder (libgcc_eh of GCC 12) asks glibc 2.35 for the object that an address lies in.

#include <link.h>

#include <cstdint>

namespace {

// struct dl_find_object in <dlfcn.h> of glibc 2.35, as it is on x86-64 and arm64.
struct FoundObject {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  void* link_map;
  void* eh_frame;
  unsigned long long reserved[7];
};

}  // namespace

// By another name: the headers of newer C libraries declare the function themselves.
extern "C" __attribute__((visibility("hidden"))) int FindObject(
    void* address, FoundObject* result) __asm__("_dl_find_object");

namespace {

struct Search {
  uintptr_t address;
  FoundObject* result;
};

int Visit(struct dl_phdr_info* object, size_t, void* argument) {
  const Search& search = *static_cast<Search*>(argument);
  bool is_in = false;
  uintptr_t eh_frame = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const auto& header = object->dlpi_phdr[i];
    const uintptr_t start = object->dlpi_addr + header.p_vaddr;
    if (header.p_type == PT_GNU_EH_FRAME) eh_frame = start;
    if (header.p_type != PT_LOAD || search.address < start ||
        search.address >= start + header.p_memsz) {
      continue;
    }
    is_in = true;
    search.result->map_start = reinterpret_cast<void*>(start);
    search.result->map_end = reinterpret_cast<void*>(start + header.p_memsz);
  }
  if (!is_in || eh_frame == 0) return is_in ? -1 : 0;
  search.result->eh_frame = reinterpret_cast<void*>(eh_frame);
  return 1;
}

}  // namespace

int FindObject(void* address, FoundObject* result) {
  *result = {};
  Search search = {reinterpret_cast<uintptr_t>(address), result};
  return dl_iterate_phdr(Visit, &search) == 1 ? 0 : -1;
}
