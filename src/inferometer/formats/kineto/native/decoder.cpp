// The library's functions, as Python's ctypes calls them: without the GIL, so that several threads decode at once.
//
// A handle is what was decoded. Null says that the reader in Python must have a look; memory that runs out says the same.

#include "../../native/exported.h"
#include "arrow.h"
#include "scan.h"

using kineto::LaunchScan;
using kineto::Section;

using Handle = std::shared_ptr<Section>;

namespace {

int exported(
    const kineto::Column& column, std::shared_ptr<const void> owner, ArrowArray* array, ArrowSchema* schema) {
  try {
    kineto::export_column(column, std::move(owner), *array, *schema);
    return 0;
  } catch (const std::bad_alloc&) {
    return 1;
  }
}

kineto::Separator separator(const char* between, size_t size) {
  std::string text(between, size);
  const size_t close = text.find('}') + 1, opening = text.find('{');
  return {std::move(text), close, opening};
}

} // namespace

// Events of `text[begin:]` that begin before `limit`. `is_guess`: the first begins at `begin` or later.
EXPORTED Handle* kineto_decode(
    const char* text, size_t size, size_t begin, size_t limit, int is_guess, uint32_t wanted, int64_t batch_events) {
  return made([&] {
    const std::string_view all(text, size);
    const size_t start = is_guess ? kineto::guess_start(all, begin) : begin;
    kineto::expect(start < size && start < limit);
    auto section = std::make_shared<Section>(wanted, batch_events);
    section->read(all, start, limit);
    return new Handle(std::move(section));
  });
}

EXPORTED void kineto_free(Handle* section) {
  delete section;
}

// `places`: where it starts, where it stops, whether it is the last.
EXPORTED void kineto_places(const Handle* section, int64_t* places) {
  places[0] = (*section)->start;
  places[1] = (*section)->stop;
  places[2] = (*section)->is_last;
}

EXPORTED int64_t kineto_groups(const Handle* section, const kineto::Group** groups) {
  *groups = (*section)->groups.data();
  return static_cast<int64_t>((*section)->groups.size());
}

EXPORTED int64_t kineto_foreign(const Handle* section, const kineto::Foreign** foreign) {
  *foreign = (*section)->foreign.data();
  return static_cast<int64_t>((*section)->foreign.size());
}

EXPORTED int64_t kineto_rows(const Handle* section, int table) {
  return static_cast<int64_t>((*section)->rows.table(table).rows());
}

EXPORTED int64_t kineto_columns(const Handle* section, int table) {
  return static_cast<int64_t>((*section)->rows.table(table).columns().size());
}

EXPORTED const char* kineto_name(const Handle* section, int table, int column) {
  return (*section)->rows.table(table).columns()[column]->name();
}

EXPORTED int kineto_is_text(const Handle* section, int table, int column) {
  return (*section)->rows.table(table).columns()[column]->texts() != nullptr;
}

// 0: done; 1: memory ran out.
EXPORTED int kineto_export(const Handle* section, int table, int column, ArrowArray* array, ArrowSchema* schema) {
  return exported(*(*section)->rows.table(table).columns()[column], *section, array, schema);
}

// As `kineto_export`, of the different texts of a column; its rows are numbers of them.
EXPORTED int kineto_export_texts(const Handle* section, int table, int column, ArrowArray* array, ArrowSchema* schema) {
  const auto texts = (*section)->rows.table(table).columns()[column]->texts();
  return exported(kineto::DifferentTexts(*texts), texts, array, schema);
}

// Begins to read the launches of a file.
EXPORTED LaunchScan* kineto_scan(
    const char* path, const kineto::Extent* extent, const char* between, size_t size, unsigned threads) {
  return made([&] { return new LaunchScan(path, *extent, separator(between, size), threads); });
}

// The number of parts once all are read; -1 where Python must have a look. `rest`: the first separator that wasn't read.
EXPORTED int64_t kineto_scan_wait(LaunchScan* scan, size_t* rest) {
  if (!scan->wait()) {
    return -1;
  }
  *rest = scan->rest();
  return static_cast<int64_t>(scan->parts().size());
}

EXPORTED Handle* kineto_scan_part(const LaunchScan* scan, size_t number) {
  return made([&] { return new Handle(scan->parts()[number]); });
}

// The launches of a text that begins with an event and ends with a separator.
EXPORTED Handle* kineto_launches(const char* text, size_t size, const char* between, size_t between_size) {
  return made([&] {
    const kineto::Separator known = separator(between, between_size);
    kineto::LaunchDecoder launches(known);
    launches.add(std::string_view(text, size));
    return new Handle(launches.finish());
  });
}

EXPORTED void kineto_scan_free(LaunchScan* scan) {
  delete scan;
}
