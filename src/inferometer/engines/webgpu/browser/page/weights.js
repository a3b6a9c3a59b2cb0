// Brings weights to the device: from the browser's own files (OPFS) where a load before this one kept them, else from
// Python in ranges. A file is one part of the weights, and complete by its size: a file that isn't closed isn't there.

const FOLDER = "inferometer-weights";
const PIECE_BYTES = 16 << 20;
const IN_FLIGHT_BYTES = 64 << 20; // handed to the device before we wait for it

export class Weights {
  constructor(program, log, progress) {
    this.program = program;
    this.log = log;
    this.progress = progress;
    this.fetched = {};
    this.cached = {};
    this.total = program.weights.reduce((sum, { size }) => sum + size, 0);
    this.done = 0;
  }

  async load(engine, mark) {
    const folder = this.program.cached ? await this.openFolder() : null;
    const parts = Map.groupBy(this.program.weights, ({ part }) => part);
    for (const [part, places] of parts) {
      const bytes = places.reduce((sum, { size }) => sum + size, 0);
      this.fetched[part] = this.cached[part] = 0;
      await mark(part, () => this.loadPart(engine, folder, part, places, bytes), bytes);
      const [fetched, cached] = [this.fetched[part], this.cached[part]];
      this.log("log", "Loader", `${part}: ${fetched} bytes fetched, ${cached} bytes from the browser's cache`);
    }
  }

  // The folder of these weights; those of others are dropped. null, with a line, where the browser has none for us.
  async openFolder() {
    try {
      const root = await (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER, { create: true });
      for await (const name of root.keys()) {
        if (name === this.program.fingerprint) continue;
        await root.removeEntry(name, { recursive: true });
        this.log("log", "Cache", `dropped other weights: ${name}`);
      }
      return await root.getDirectoryHandle(this.program.fingerprint, { create: true });
    } catch (error) {
      this.log("warning", "Cache", `no weights are kept: this browser gives no private files: ${error.message}`);
      return null;
    }
  }

  async loadPart(engine, folder, part, places, bytes) {
    const base = places[0].offset;
    const file = await this.findFile(folder, part, bytes);
    if (file) {
      await this.upload(engine, places, bytes, (at, size) => file.slice(at, at + size).arrayBuffer());
      this.cached[part] = bytes;
      return;
    }
    const keeper = await this.openKeeper(folder, part, bytes);
    try {
      await this.upload(engine, places, bytes, async (at, size) => {
        const data = await this.fetchRange(base + at, size);
        this.fetched[part] += data.byteLength;
        await keeper.write(data);
        return data;
      });
    } catch (error) {
      await keeper.drop();
      throw error;
    }
    await keeper.close();
  }

  async findFile(folder, part, bytes) {
    try {
      const file = await (await folder.getFileHandle(part)).getFile();
      return file.size === bytes ? file : null;
    } catch {
      return null; // no folder, or no such file
    }
  }

  // Writes a part as it comes. A full disk costs the cache, not the load.
  async openKeeper(folder, part, bytes) {
    let stream = null;
    const fail = async (error) => {
      this.log("warning", "Cache", `${part} is not kept: ${error.message}`);
      const broken = stream;
      stream = null;
      await broken?.abort().catch(() => {});
    };
    if (folder) {
      try {
        const { quota = Infinity, usage = 0 } = await navigator.storage.estimate();
        if (bytes > quota - usage) throw new Error(`${bytes} bytes are wanted, ${quota - usage} are left`);
        stream = await (await folder.getFileHandle(part, { create: true })).createWritable();
      } catch (error) {
        await fail(error);
      }
    }
    return {
      write: async (data) => stream?.write(data).catch(fail),
      close: async () => stream?.close().catch(fail),
      drop: async () => stream?.abort().catch(() => {}),
    };
  }

  async fetchRange(at, size) {
    const response = await fetch("weights.bin", { headers: { Range: `bytes=${at}-${at + size - 1}` } });
    if (response.status !== 206) throw new Error(`weights: want status 206, found ${response.status}`);
    const data = await response.arrayBuffer();
    if (data.byteLength !== size) throw new Error(`weights: want ${size} bytes at ${at}, found ${data.byteLength}`);
    return data;
  }

  // Pieces of a part in order, the next one under way while this one goes to the device.
  async upload(engine, places, bytes, get) {
    const ask = (at) => {
      const piece = get(at, Math.min(PIECE_BYTES, bytes - at));
      piece.catch(() => {}); // seen where it is awaited
      return piece;
    };
    const base = places[0].offset;
    let [number, inFlight] = [0, 0];
    let next = bytes ? ask(0) : null;
    for (let at = 0; at < bytes; ) {
      const data = await next;
      const end = at + data.byteLength;
      next = end < bytes ? ask(end) : null;
      while (number < places.length && places[number].offset - base < end) {
        const { buffer, offset, size } = places[number];
        const first = Math.max(at, offset - base);
        const last = Math.min(end, offset - base + size);
        engine.write(buffer, new Uint8Array(data, first - at, last - first), first - (offset - base));
        if (last < offset - base + size) break;
        number += 1;
      }
      inFlight += data.byteLength;
      if (inFlight >= IN_FLIGHT_BYTES) {
        await engine.device.queue.onSubmittedWorkDone();
        inFlight = 0;
      }
      this.done += data.byteLength;
      this.progress(this.done, this.total);
      at = end;
    }
    await engine.device.queue.onSubmittedWorkDone();
  }
}
