// Runs a program on the browser's device: the loop over submits is here, so that no round trip to Python is in its times.

const SET_QUERIES = 4096; // the most that a query set may have
const MOST_SETS = 32; // live at a time; some drivers have no more
const FEATURES = ["timestamp-query", "shader-f16", "subgroups"];
const LIMITS = [
  "maxBufferSize",
  "maxStorageBufferBindingSize",
  "maxStorageBuffersPerShaderStage",
  "maxComputeInvocationsPerWorkgroup",
  "maxComputeWorkgroupSizeX",
  "maxComputeWorkgroupStorageSize",
];
const GREEDY = Array.from({ length: 32 }, (_, word) => (word === 4 ? 0x3f800000 : 0)); // the penalty is 1.0: none

const now = () => performance.now();

// The device and what there is to tell of it; throws with words for the reader.
export async function openDevice() {
  if (!navigator.gpu) throw new Error("this browser has no WebGPU (navigator.gpu is missing)");
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) throw new Error("this browser gives no WebGPU adapter: chrome://gpu tells why");
  const features = FEATURES.filter((name) => adapter.features.has(name));
  const limits = Object.fromEntries(LIMITS.map((name) => [name, adapter.limits[name]]));
  const device = await adapter.requestDevice({ requiredFeatures: features, requiredLimits: limits });
  const info = adapter.info ?? {};
  const words = [info.vendor, info.architecture, info.device].filter(Boolean).join(" ");
  const fallback = (info.isFallbackAdapter ?? adapter.isFallbackAdapter) || /swiftshader/i.test(words);
  const facts = {
    name: info.description || words || "unnamed adapter",
    kind: fallback ? "CPU" : "unknown",
    features,
    limits,
    description: [words, navigator.userAgent].filter(Boolean).join("; "),
  };
  return { device, facts };
}

// The file and line of a line of a kernel's text, which has other files in it: as `place_of` in includes.py.
function placeOf(stretches, line) {
  const [first, file, start] = stretches.findLast(([begin]) => begin <= line) ?? stretches[0];
  return `${file}:${start + line - first}`;
}

// Workgroups along an axis: as `Extent` in program.py.
function groups(dim, tokens, position) {
  if (typeof dim === "number") return dim;
  const n = dim.over === "tokens" ? tokens : position + tokens;
  return Math.ceil((dim.most == null ? n : Math.min(n, dim.most)) / dim.per);
}

export class Engine {
  constructor(device, log) {
    this.device = device;
    this.log = log;
    this.timed = device.features.has("timestamp-query");
    this.trouble = null; // the first error that no call reported
    this.gone = null;
    this.sets = [];
    this.buffers = new Map();
    device.addEventListener("uncapturederror", (event) => {
      this.trouble ??= event.error.message;
      log("error", "Device", event.error.message);
    });
    device.lost.then((info) => {
      this.gone = `the device was lost (${info.reason || "no reason"}): ${info.message}`;
      log("error", "Device", this.gone);
    });
  }

  // Buffers, pipelines, weights; then every dispatch once, so that no compiler runs inside a timed pass.
  async load(program, weights, mark) {
    for (const buffer of this.buffers.values()) buffer.destroy();
    this.readback?.destroy();
    this.readback = null;
    this.trouble = null;
    this.held = []; // tokens whose keys and values are in the cache
    this.program = program;
    await mark("buffers", () => this.makeBuffers());
    await mark("pipelines", () => this.makePipelines());
    await weights.load(this, mark);
    if (Object.keys(program.phases).length) await mark("warm-up", () => this.warmUp());
    this.check();
  }

  check() {
    if (this.gone) throw new Error(this.gone);
    if (this.trouble) throw new Error(`the device reported: ${this.trouble}`);
  }

  async makeBuffers() {
    const { device } = this;
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC;
    device.pushErrorScope("validation");
    device.pushErrorScope("out-of-memory");
    this.buffers = new Map(
      this.program.buffers.map(({ name, size }) => [name, device.createBuffer({ label: name, size, usage })]),
    );
    const [memory, invalid] = [await device.popErrorScope(), await device.popErrorScope()];
    const bytes = this.program.buffers.reduce((sum, each) => sum + each.size, 0);
    if (memory) throw new Error(`too little memory for ${bytes} bytes of buffers: ${memory.message}`);
    if (invalid) throw new Error(`buffers: ${invalid.message}`);
    this.log("log", "Buffers", `${this.buffers.size} buffers, ${bytes} bytes`);
  }

  async makePipelines() {
    const { device, program } = this;
    const made = {};
    for (const [name, { text, access, stretches }] of Object.entries(program.kernels)) {
      const entries = access.map((each, binding) => ({
        binding,
        visibility: GPUShaderStage.COMPUTE,
        buffer: { type: each === "read" ? "read-only-storage" : "storage" },
      }));
      device.pushErrorScope("validation");
      const module = device.createShaderModule({ label: name, code: text });
      const layout = device.createBindGroupLayout({ label: name, entries });
      const refused = await device.popErrorScope();
      const { messages } = await module.getCompilationInfo();
      const errors = messages.filter(({ type }) => type === "error");
      const wrong = errors.map((each) => `${placeOf(stretches, each.lineNum)}: ${each.message}`);
      if (refused || wrong.length) throw new Error(`kernel ${name}: ${wrong.join("; ") || refused.message}`);
      made[name] = { module, layout, whole: device.createPipelineLayout({ bindGroupLayouts: [layout] }) };
    }
    this.pipelines = await Promise.all(
      program.pipelines.map(async ({ kernel, constants }) => {
        const { module, whole } = made[kernel];
        const compute = { module, entryPoint: "main", constants };
        try {
          return await device.createComputePipelineAsync({ label: kernel, layout: whole, compute });
        } catch (error) {
          throw new Error(`kernel ${kernel} with ${JSON.stringify(constants)}: ${error.message}`);
        }
      }),
    );
    device.pushErrorScope("validation");
    const known = new Map();
    this.phases = {};
    for (const [phase, dispatches] of Object.entries(program.phases)) {
      this.phases[phase] = dispatches.map(({ label, pipeline, bindings, grid }) => {
        const key = JSON.stringify([pipeline, bindings]);
        if (!known.has(key)) {
          const entries = bindings.map(([name, offset, size], binding) => ({
            binding,
            resource: { buffer: this.buffers.get(name), offset, size },
          }));
          const layout = made[program.pipelines[pipeline].kernel].layout;
          known.set(key, device.createBindGroup({ label, layout, entries }));
        }
        return { label, pipeline: this.pipelines[pipeline], group: known.get(key), grid };
      });
    }
    const invalid = await device.popErrorScope();
    if (invalid) throw new Error(`bindings: ${invalid.message}`);
    this.log("log", "Pipelines", `${this.pipelines.length} pipelines, ${known.size} bind groups`);
  }

  write(name, data, offset = 0) {
    this.device.queue.writeBuffer(this.buffers.get(name), offset, data);
  }

  // Every dispatch once on a prompt of zeros; what that wrote is cleared again.
  async warmUp() {
    const rows = Math.min(2, this.program.most_rows);
    for (const [phase, tokens] of [["prefill", rows], ["decode", 1], ["head", 1]]) {
      if (!this.phases[phase]) continue;
      this.begin({ prompt: [0, 0], sampling: GREEDY });
      this.write("state", new Uint32Array([0, tokens, 0, 0]));
      await this.submit([{ phases: [phase], tokens, position: 0 }], "single_pass");
    }
    const filled = new Set(this.program.weights.map(({ buffer }) => buffer));
    const encoder = this.device.createCommandEncoder();
    for (const [name, buffer] of this.buffers) if (!filled.has(name)) encoder.clearBuffer(buffer);
    this.device.queue.submit([encoder.finish()]);
    await this.device.queue.onSubmittedWorkDone();
  }

  // The prompt, how to choose, and seen what isn't read again.
  begin(request, kept = 0) {
    this.write("sampling", new Uint32Array(request.sampling));
    this.write("tokens", new Uint32Array(request.prompt));
    const seen = new Uint32Array(this.buffers.get("seen").size / 4);
    for (const token of request.prompt.slice(0, kept)) seen[token] = 1;
    this.write("seen", seen);
  }

  // Of the prompt, what the cache holds already, as `kept_prefix` in Python: one token at least is read.
  kept({ prompt, keeps_cache: keeps }) {
    const most = keeps ? Math.min(this.held.length, prompt.length - 1) : 0;
    for (let at = 0; at < most; at += 1) if (this.held[at] !== prompt[at]) return at;
    return most;
  }

  // A whole answer: `tell` is given every submit as it ends; `stopped` says whether the reader has had enough.
  async run(request, tell, stopped) {
    const { prompt, new_tokens: wanted, batch, timing } = request;
    const { most_rows: mostRows } = this.program;
    const stop = new Set(request.stop);
    const kept = this.kept(request);
    this.held = prompt.slice(0, kept);
    this.begin(request, kept);
    await this.device.queue.onSubmittedWorkDone(); // what is queued until here is no part of the first submit
    let [position, made] = [kept, 0];
    const tokens = [...prompt];
    const pass = async (passes) => {
      const submission = await this.submit(passes, timing);
      made += submission.tokens.length;
      tokens.push(...submission.tokens);
      const last = passes[passes.length - 1];
      this.held = tokens.slice(0, last.position + last.tokens);
      tell(submission);
      return submission.tokens.some((token) => stop.has(token)) || stopped();
    };
    let over = wanted < 1;
    while (position < prompt.length && !over) {
      const rows = Math.min(mostRows, prompt.length - position);
      const phases = position + rows === prompt.length ? ["prefill", "head"] : ["prefill"];
      this.write("state", new Uint32Array([position, rows, 0, 0]));
      over = await pass([{ phases, tokens: rows, position }]);
      position += rows;
    }
    while (made < wanted && !over) {
      const steps = Math.min(batch, wanted - made);
      const first = position;
      over = await pass(
        Array.from({ length: steps }, (_, step) => ({ phases: ["decode", "head"], tokens: 1, position: first + step })),
      );
      position += steps;
    }
  }

  // One submit and its read-back, with the times of its parts in ms.
  async submit(passes, timing) {
    const { device } = this;
    const heads = passes.filter(({ phases }) => phases.includes("head")).map((each) => each.position + each.tokens);
    const count = passes.reduce((sum, { phases }) => sum + phases.reduce((n, p) => n + this.phases[p].length, 0), 0);
    const stamped = timing === "timestamps" && this.timed ? Math.min(count, (MOST_SETS * SET_QUERIES) / 2) : 0;
    const tokenBytes = Math.max(8, Math.ceil(heads.length / 2) * 8);
    this.prepare(stamped, tokenBytes + stamped * 16);

    const start = now();
    const encoder = device.createCommandEncoder();
    if (timing === "single_pass") this.recordTogether(encoder, passes);
    else this.recordApart(encoder, passes, stamped);
    heads.forEach((at, slot) => {
      encoder.copyBufferToBuffer(this.buffers.get("tokens"), at * 4, this.readback, slot * 4, 4);
    });
    for (let first = 0; first < stamped * 2; first += SET_QUERIES) {
      const queries = Math.min(SET_QUERIES, stamped * 2 - first);
      encoder.resolveQuerySet(this.sets[first / SET_QUERIES], 0, queries, this.resolved, first * 8);
    }
    if (stamped) encoder.copyBufferToBuffer(this.resolved, 0, this.readback, tokenBytes, stamped * 16);
    if (!stamped && !heads.length) encoder.copyBufferToBuffer(this.buffers.get("state"), 0, this.readback, 0, 4);
    const commands = encoder.finish();
    const recorded = now();
    device.queue.submit([commands]);
    const submitted = now();
    await this.readback.mapAsync(GPUMapMode.READ, 0, tokenBytes + stamped * 16).catch(async (error) => {
      await Promise.race([device.lost, new Promise((done) => setTimeout(done, 500))]);
      this.check();
      throw error;
    });
    const mapped = now();
    const data = this.readback.getMappedRange(0, tokenBytes + stamped * 16).slice(0);
    this.readback.unmap();
    const read = now();

    this.check();
    return {
      passes,
      timing,
      start,
      record: recorded - start,
      submit: submitted - recorded,
      wait: mapped - submitted,
      read: read - mapped,
      tokens: [...new Uint32Array(data, 0, heads.length)],
      ...this.times(new BigUint64Array(data, tokenBytes, stamped * 2), timing === "timestamps" ? count : 0),
    };
  }

  prepare(stamped, bytes) {
    const { device } = this;
    const sets = Math.ceil((stamped * 2) / SET_QUERIES);
    if (sets > this.sets.length) {
      this.resolved?.destroy();
      const size = sets * SET_QUERIES * 8;
      this.resolved = device.createBuffer({ size, usage: GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC });
      while (this.sets.length < sets) {
        this.sets.push(device.createQuerySet({ type: "timestamp", count: SET_QUERIES }));
      }
    }
    if (!this.readback || this.readback.size < bytes) {
      this.readback?.destroy();
      this.readback = device.createBuffer({ size: bytes, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    }
  }

  recordTogether(encoder, passes) {
    const pass = encoder.beginComputePass();
    for (const { phases, tokens, position } of passes) {
      for (const phase of phases) {
        for (const { pipeline, group, grid } of this.phases[phase]) {
          pass.setPipeline(pipeline);
          pass.setBindGroup(0, group);
          pass.dispatchWorkgroups(...grid.map((dim) => groups(dim, tokens, position)));
        }
      }
    }
    pass.end();
  }

  recordApart(encoder, passes, stamped) {
    let number = 0;
    for (const { phases, tokens, position } of passes) {
      for (const phase of phases) {
        for (const { pipeline, group, grid } of this.phases[phase]) {
          const query = (number * 2) % SET_QUERIES;
          const querySet = number < stamped ? this.sets[Math.floor((number * 2) / SET_QUERIES)] : null;
          const timestampWrites = querySet && {
            querySet,
            beginningOfPassWriteIndex: query,
            endOfPassWriteIndex: query + 1,
          };
          const pass = encoder.beginComputePass(timestampWrites ? { timestampWrites } : undefined);
          pass.setPipeline(pipeline);
          pass.setBindGroup(0, group);
          pass.dispatchWorkgroups(...grid.map((dim) => groups(dim, tokens, position)));
          pass.end();
          number += 1;
        }
      }
    }
  }

  // Begin and end of each dispatch in ns after the earliest; null where a query holds no time.
  times(stamps, count) {
    const usable = (number) => stamps[number] > 0n && stamps[number + 1] >= stamps[number];
    let base = null;
    for (let at = 0; at < stamps.length; at += 2) {
      if (usable(at) && (base === null || stamps[at] < base)) base = stamps[at];
    }
    const times = [];
    let untimed = 0;
    for (let at = 0; at < count * 2; at += 2) {
      if (at < stamps.length && usable(at)) times.push(Number(stamps[at] - base), Number(stamps[at + 1] - base));
      else {
        times.push(null, null);
        untimed += 1;
      }
    }
    return { base: String(base ?? 0), times, untimed };
  }
}
