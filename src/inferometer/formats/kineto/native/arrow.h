// Fills the structures of Arrow's C data interface; who takes them calls `release`, from any thread.
#pragma once

#include "columns.h"

namespace kineto {

inline void release_array(ArrowArray* array) {
  for (int64_t i = 0; i < array->n_children; ++i) {
    if (ArrowArray* child = array->children[i]; child->release != nullptr) {
      child->release(child);
    }
  }
  delete static_cast<Exported*>(array->private_data);
  array->release = nullptr;
}

struct ExportedSchema {
  ArrowSchema child = {};
  ArrowSchema* children[1] = {&child};
};

inline void release_child(ArrowSchema* schema) {
  schema->release = nullptr;
}

inline void release_schema(ArrowSchema* schema) {
  delete static_cast<ExportedSchema*>(schema->private_data);
  schema->release = nullptr;
}

constexpr int64_t NULLABLE = 2;

inline void give(std::unique_ptr<Exported> exported, ArrowArray& array) {
  array.n_buffers = static_cast<int64_t>(exported->buffers.size());
  array.buffers = exported->buffers.data();
  array.private_data = exported.release();
  array.release = release_array;
}

// The values of a list of triples are its child's; the list keeps which of them are null.
inline void split_triples(Exported& exported, ArrowArray& array) {
  auto values = std::make_unique<Exported>();
  values->owner = exported.owner;
  values->buffers = {nullptr, exported.buffers.back()};
  exported.buffers.pop_back();
  exported.child.length = 3 * array.length;
  give(std::move(values), exported.child);
  array.n_children = 1;
  array.children = exported.children;
}

// `owner` lives as long as the array does; it holds the column.
inline void export_column(
    const Column& column, std::shared_ptr<const void> owner, ArrowArray& array, ArrowSchema& schema) {
  auto exported = std::make_unique<Exported>();
  auto described = std::make_unique<ExportedSchema>();
  exported->owner = std::move(owner);
  array = {};
  column.fill(array, *exported);
  schema = {};
  schema.format = column.format();
  schema.name = column.name();
  schema.flags = NULLABLE;
  if (column.is_triples()) {
    split_triples(*exported, array);
    described->child.format = "l";
    described->child.name = "item";
    described->child.flags = NULLABLE;
    described->child.release = release_child;
    schema.n_children = 1;
    schema.children = described->children;
  }
  give(std::move(exported), array);
  schema.private_data = described.release();
  schema.release = release_schema;
}

} // namespace kineto
