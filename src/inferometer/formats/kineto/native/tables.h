// The tables' rows, a column each value; their columns are named as in trace/tables.py.
#pragma once

#include "categories.h"

namespace kineto {

// An event with a start and a duration, and what is read of its arguments.
struct Record {
  const Category& category;
  const Event& event;
  const Args& args;
  std::string_view name;
};

class Table {
 public:
  virtual ~Table() = default;
  virtual std::vector<Column*> columns() = 0;

  size_t rows() const {
    return rows_;
  }

  void add(const Record& record) {
    fill(record);
    ++rows_;
  }

  void reorder(size_t begin, const std::vector<uint32_t>& order) {
    for (Column* column : columns()) {
      column->reorder(begin, order);
    }
  }

 protected:
  virtual void fill(const Record& record) = 0;

 private:
  size_t rows_ = 0;
};

// Columns that every table has.
struct Times {
  Integers start{"start_ns"}, duration{"dur_ns"};

  void add(const Event& event) {
    start.add(parse_ns(event.values[Event::START]));
    const int64_t ns = parse_ns(event.values[Event::DURATION]);
    expect(ns <= LONGEST_NS);
    duration.add(ns);
  }
};

inline Integer without_zero(const Integer& number) {
  return number == 0 ? Integer() : number;
}

inline Integer external_id_of(const Args& args) {
  return args.external_id ? args.external_id : args.old_external_id;
}

inline Text text_of(const Raw& raw) {
  return raw.text.empty() ? Text() : Text(raw.text);
}

// `gpu:7`; null for a negative number.
class DeviceColumn : public TextColumn {
 public:
  using TextColumn::TextColumn;

  void add(int64_t number) {
    if (number < 0) {
      TextColumn::add({});
    } else {
      TextColumn::add("gpu:" + std::to_string(number));
    }
  }
};

class Launches : public Table {
 public:
  std::vector<Column*> columns() override {
    return {&kind_,     &kernel_,      &device_,      &context_,  &stream_,        &times_.start, &times_.duration,
            &queued_,   &correlation_, &external_id_, &graph_id_, &graph_node_id_, &grid_,        &block_,
            &registers_, &shared_,     &bytes_,       &occupancy_, &collective_};
  }

 protected:
  void fill(const Record& record) override {
    const auto& [category, event, args, name] = record;
    kind_.add(category.label);
    kernel_.add(name);
    device_.add(args.device ? *args.device : *event.integer(Event::PROCESS));
    context_.add(args.context);
    stream_.add(args.stream ? args.stream : event.integer(Event::THREAD));
    times_.add(event);
    queued_.add(without_zero(args.queued));
    correlation_.add(args.correlation);
    external_id_.add(external_id_of(args));
    graph_id_.add(without_zero(args.graph_id));
    graph_node_id_.add(without_zero(args.graph_node_id));
    grid_.add(args.grid);
    block_.add(args.block);
    registers_.add(args.registers);
    shared_.add(args.shared);
    bytes_.add(args.bytes);
    occupancy_.add(args.occupancy ? std::optional(*args.occupancy / 100) : std::nullopt);
    const std::string_view text = event.values[Event::ARGS];
    const bool is_collective = category.label == "kernel" && text.find("\"Collective name\"") != text.npos;
    collective_.add(is_collective ? Text(text) : Text());
  }

 private:
  TextColumn kind_{"kind"}, kernel_{"kernel"};
  DeviceColumn device_{"device"};
  Integers context_{"context"}, stream_{"stream"};
  Times times_;
  Integers queued_{"queued_ns"}, correlation_{"correlation_id"}, external_id_{"external_id"}, graph_id_{"graph_id"},
      graph_node_id_{"graph_node_id"};
  Triples grid_{"grid"}, block_{"block"};
  Integers registers_{"registers"}, shared_{"shared_bytes"}, bytes_{"bytes"};
  Doubles occupancy_{"occupancy"};
  TextColumn collective_{"collective"}; // the arguments of a kernel that communicates, for Python to decode
};

class Calls : public Table {
 public:
  std::vector<Column*> columns() override {
    return {&api_,         &process_, &thread_, &times_.start, &times_.duration, &correlation_,
            &external_id_, &kernel_,  &grid_,   &block_,       &stream_,         &bytes_};
  }

 protected:
  void fill(const Record& record) override {
    const auto& [category, event, args, name] = record;
    api_.add(name);
    process_.add(event.integer(Event::PROCESS));
    thread_.add(event.integer(Event::THREAD));
    times_.add(event);
    correlation_.add(args.correlation);
    external_id_.add(external_id_of(args));
    kernel_.add(args.kernel);
    grid_.add(args.grid);
    block_.add(args.block);
    stream_.add(args.stream_handle.number);
    bytes_.add(args.bytes ? args.bytes : args.size);
  }

 private:
  TextColumn api_{"api"};
  Integers process_{"process"}, thread_{"thread"};
  Times times_;
  Integers correlation_{"correlation_id"}, external_id_{"external_id"};
  TextColumn kernel_{"kernel"};
  Triples grid_{"grid"}, block_{"block"};
  Integers stream_{"stream"}, bytes_{"bytes"};
};

class Ops : public Table {
 public:
  std::vector<Column*> columns() override {
    return {&op_,     &process_, &thread_,  &times_.start, &times_.duration, &external_id_, &record_function_id_, &dims_,
            &dtypes_, &strides_, &scalars_, &sequence_,    &file_,           &hash_,        &backend_};
  }

 protected:
  void fill(const Record& record) override {
    const auto& [category, event, args, name] = record;
    op_.add(name);
    process_.add(event.integer(Event::PROCESS));
    thread_.add(event.integer(Event::THREAD));
    times_.add(event);
    external_id_.add(external_id_of(args));
    record_function_id_.add(without_zero(args.record_function_id));
    dims_.add(text_of(args.dims.text.empty() ? args.old_dims : args.dims));
    dtypes_.add(text_of(args.dtypes));
    strides_.add(text_of(args.strides));
    scalars_.add(text_of(args.scalars));
    sequence_.add(args.sequence_number);
    file_.add(args.kernel_file);
    hash_.add(args.kernel_hash);
    backend_.add(args.kernel_backend);
  }

 private:
  TextColumn op_{"op"};
  Integers process_{"process"}, thread_{"thread"};
  Times times_;
  Integers external_id_{"external_id"}, record_function_id_{"record_function_id"};
  TextColumn dims_{"input_dims"}, dtypes_{"input_dtypes"}, strides_{"input_strides"}, scalars_{"scalars"};
  Integers sequence_{"sequence_number"};
  TextColumn file_{"kernel_file"}, hash_{"kernel_hash"}, backend_{"kernel_backend"};
};

class Frames : public Table {
 public:
  std::vector<Column*> columns() override {
    return {&frame_, &module_, &process_, &thread_, &times_.start, &times_.duration, &frame_id_, &parent_};
  }

 protected:
  void fill(const Record& record) override {
    constexpr std::string_view MODULE = "nn.Module: ";
    const auto& [category, event, args, name] = record;
    frame_.add(name);
    module_.add(name.substr(0, MODULE.size()) == MODULE ? Text(name.substr(MODULE.size())) : Text());
    process_.add(event.integer(Event::PROCESS));
    thread_.add(event.integer(Event::THREAD));
    times_.add(event);
    frame_id_.add(args.frame_id);
    parent_.add(args.parent);
  }

 private:
  TextColumn frame_{"frame"}, module_{"module"};
  Integers process_{"process"}, thread_{"thread"};
  Times times_;
  Integers frame_id_{"frame_id"}, parent_{"parent"};
};

class Spans : public Table {
 public:
  std::vector<Column*> columns() override {
    return {&span_,   &domain_,      &process_,        &thread_, &device_,
            &stream_, &times_.start, &times_.duration, &dims_,   &dtypes_};
  }

 protected:
  void fill(const Record& record) override {
    const auto& [category, event, args, name] = record;
    const bool is_on_device = category.kind == Kind::DEVICE_SPAN;
    const Integer process = event.integer(Event::PROCESS), thread = event.integer(Event::THREAD);
    span_.add(name);
    domain_.add(category.label);
    process_.add(is_on_device ? Integer() : process);
    thread_.add(is_on_device ? Integer() : thread);
    device_.add(is_on_device ? args.device.value_or(*process) : -1);
    stream_.add(is_on_device ? args.stream.value_or(*thread) : Integer());
    times_.add(event);
    expect(!args.dims.text.empty() || args.dtypes.text.empty()); // what counts then depends on the events around
    dims_.add(text_of(args.dims));
    dtypes_.add(text_of(args.dtypes));
  }

 private:
  TextColumn span_{"span"}, domain_{"domain"};
  Integers process_{"process"}, thread_{"thread"};
  DeviceColumn device_{"device"};
  Integers stream_{"stream"};
  Times times_;
  TextColumn dims_{"input_dims"}, dtypes_{"input_dtypes"};
};

} // namespace kineto
