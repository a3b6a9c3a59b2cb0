// Columns of rows that grow, and how Arrow's C data interface hands them to polars without a copy.
//
// Source of the layout: https://arrow.apache.org/docs/format/CDataInterface.html and Columnar.html.
#pragma once

#include "texts.h"

#include <array>
#include <memory>
#include <optional>

extern "C" {
struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema** children;
  ArrowSchema* dictionary;
  void (*release)(ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  ArrowArray** children;
  ArrowArray* dictionary;
  void (*release)(ArrowArray*);
  void* private_data;
};
}

namespace kineto {

using Triple = std::array<int64_t, 3>;

// What an array of Arrow's needs as long as it is used.
struct Exported {
  std::vector<const void*> buffers;
  std::shared_ptr<const void> owner;
  std::vector<uint8_t> validity;
  std::vector<View> views;
  int64_t text_bytes = 0;
  ArrowArray child = {};
  ArrowArray* children[1] = {&child};
};

// A column of any type. Rows are put in another order by `reorder`: row `begin + i` is what row `begin + order[i]` was.
class Column {
 public:
  explicit Column(const char* name) : name_(name) {}
  virtual ~Column() = default;

  const char* name() const {
    return name_;
  }

  virtual void reorder(size_t begin, const std::vector<uint32_t>& order) = 0;
  virtual std::shared_ptr<const Texts> texts() const {
    return nullptr;
  }
  virtual bool is_triples() const {
    return false;
  }
  virtual const char* format() const = 0;
  virtual void fill(ArrowArray& array, Exported& exported) const = 0;

 private:
  const char* name_;
};

template <typename Item>
void reorder_items(std::vector<Item>& items, size_t begin, const std::vector<uint32_t>& order) {
  const std::vector<Item> before(items.begin() + static_cast<std::ptrdiff_t>(begin), items.end());
  for (size_t i = 0; i < order.size(); ++i) {
    items[begin + i] = before[order[i]];
  }
}

// Values of a fixed size, each of which may be null.
template <typename Value>
class Values : public Column {
 public:
  using Column::Column;

  void add(const std::optional<Value>& value) {
    values_.push_back(value.value_or(Value()));
    is_null_.push_back(!value);
    nulls_ += !value;
  }

  void reorder(size_t begin, const std::vector<uint32_t>& order) override {
    reorder_items(values_, begin, order);
    reorder_items(is_null_, begin, order);
  }

  bool is_triples() const override {
    return std::is_same_v<Value, Triple>;
  }

  const char* format() const override {
    if (std::is_same_v<Value, Texts::Code>) {
      return "I";
    }
    return std::is_same_v<Value, double> ? "g" : std::is_same_v<Value, Triple> ? "+w:3" : "l";
  }

  void fill(ArrowArray& array, Exported& exported) const override {
    array.length = static_cast<int64_t>(values_.size());
    array.null_count = static_cast<int64_t>(nulls_);
    if (nulls_ > 0) {
      exported.validity.assign((values_.size() + 7) / 8, 0);
      for (size_t i = 0; i < values_.size(); ++i) {
        exported.validity[i / 8] |= static_cast<uint8_t>(!is_null_[i] << i % 8);
      }
    }
    exported.buffers = {nulls_ > 0 ? exported.validity.data() : nullptr, values_.data()};
  }

 private:
  std::vector<Value> values_;
  std::vector<uint8_t> is_null_;
  size_t nulls_ = 0;
};

// The different texts of a column, in order of first use.
class DifferentTexts : public Column {
 public:
  explicit DifferentTexts(const Texts& texts) : Column(""), texts_(texts) {}

  void reorder(size_t, const std::vector<uint32_t>&) override {}

  const char* format() const override {
    return "vu";
  }

  void fill(ArrowArray& array, Exported& exported) const override {
    array.length = static_cast<int64_t>(texts_.size());
    for (Texts::Code code = 0; code < texts_.size(); ++code) {
      exported.views.push_back(texts_.view_of(code));
    }
    exported.text_bytes = static_cast<int64_t>(texts_.bytes().size());
    exported.buffers = {nullptr, exported.views.data(), texts_.bytes().data(), &exported.text_bytes};
  }

 private:
  const Texts& texts_;
};

// Numbers of texts, each of which may be null. The texts themselves are held apart: they are needed longer than the rows.
class TextColumn : public Values<Texts::Code> {
 public:
  using Values::Values;

  void add(const std::optional<std::string_view>& text) {
    Values::add(text ? std::optional(texts_->code_of(*text)) : std::nullopt);
  }

  std::shared_ptr<const Texts> texts() const override {
    return texts_;
  }

 private:
  std::shared_ptr<Texts> texts_ = std::make_shared<Texts>();
};

using Integers = Values<int64_t>;
using Doubles = Values<double>;
using Triples = Values<Triple>;

} // namespace kineto
