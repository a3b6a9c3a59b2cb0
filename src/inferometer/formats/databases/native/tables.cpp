// The functions for databases of SQLite, as Python's ctypes calls them: without the GIL, so that several threads read.
//
// Null or -1 says that SQLite itself must have a look; memory that runs out says the same.

#include "../../native/exported.h"
#include "rows.h"

#include <memory>

using sqlite::Block;
using sqlite::Column;
using sqlite::Database;
using sqlite::Leaves;

namespace {

struct Table {
  Table(const char* path, uint32_t root) : database(path), leaves(database, root) {}

  Database database;
  Leaves leaves;
};

} // namespace

// The table that begins on page `root`.
EXPORTED Table* sqlite_table(const char* path, uint32_t root) {
  return made([&] { return new Table(path, root); });
}

EXPORTED size_t sqlite_pages(const Table* table) {
  return table->leaves.found().size();
}

EXPORTED size_t sqlite_page_bytes(const Table* table) {
  return table->database.page_bytes();
}

// The highest number that a row of the table's page `page` may have.
EXPORTED int64_t sqlite_last(const Table* table, size_t page) {
  return table->leaves.found()[page].last;
}

EXPORTED void sqlite_table_free(Table* table) {
  delete table;
}

// `count` pages of the table from its page `first` on.
EXPORTED Block* sqlite_block(const Table* table, size_t first, size_t count) {
  return made([&] { return new Block(table->database, table->leaves, first, count); });
}

EXPORTED size_t sqlite_rows(const Block* block) {
  return block->rows;
}

// 0, or -1 where a value isn't a whole number or null.
EXPORTED int sqlite_read(const Block* block, Column* columns, size_t count) {
  try {
    block->read(columns, count);
    return 0;
  } catch (const std::exception&) {
    return -1;
  }
}

EXPORTED void sqlite_block_free(Block* block) {
  delete block;
}
