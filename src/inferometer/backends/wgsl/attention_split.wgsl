//! op: attention
//! reference: attention_split
// Attention of one row over one chunk of positions, for all query heads of a kv head: what is cached is read once a
// group. `attention_merge` adds the chunks up.
// Grid (KV_HEADS, chunks that hold positions): a workgroup takes CHUNK positions. The first chunk begins with the first
// position that the row sees, WINDOW (0: none) of them, so a window needs no more chunks than its size.
// Two phases. Scores: four threads share a position, so that loads of K lie side by side, and each keeps up to AT_ONCE
// positions and all heads in registers, so that a load of K serves every head and one of Q every position. Values: a
// thread has up to AT_ONCE columns of four dims and goes through the positions, so that a load of V serves every head.
// Heads go by blocks of BLOCK: only larger groups read K and V more than once. Three barriers a block; where there are
// twice as many threads as columns or more, `slices` of them share a column, which costs two more a head.
// Best of few positions a thread on GPUs (THREADS 64); CPU adapters, where a barrier switches between all threads of a
// workgroup, like 8 to 32 threads and a CHUNK of 128. CHUNK is 256 at most; workgroup memory is 13.5 KiB at most.
// Leaves [HEADS, MAX_CHUNKS, DH + 2]: the sum of exp(score - largest) * v, then largest, then the sum of exp.
// Memory: 4 * DH bytes (float32: 8 * DH) of K and V a position and kv head, (DH + 2) * 4 written a head and chunk.
override HEADS: u32;
override KV_HEADS: u32;
override DH: u32;
override SCALE: f32;
override WINDOW: u32;
override SOFTCAP: f32 = 0.0; // of scores, before the softmax
override CACHE: u32 = 0u; // how keys and values lie: cache_formats.wgsl
override CHUNK: u32 = 64u;
override MAX_CHUNKS: u32;
override THREADS: u32 = 64u;

const LOWEST = -1e38; // WGSL has no infinity
const MASKED = -2e38; // a score of -inf: its exp is 0 even where nothing is larger
const BLOCK = 8u;
const AT_ONCE = 4u; // positions of a thread in the first phase, columns in the second, at most
const LANES = 4u; // threads that share a position in the first phase, at most
const ROOM = 256u; // CHUNK times the threads that share a position, at most
const PARTS = 8u; // threads that look for the largest score of a head

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> q: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> k: array<vec2<u32>>;
@group(0) @binding(3) var<storage, read> v: array<vec2<u32>>;
@group(0) @binding(4) var<storage, read_write> partials: array<f32>;

//! include: key_values

var<workgroup> weights: array<array<f32, BLOCK>, ROOM>;
var<workgroup> largest: array<array<f32, PARTS>, BLOCK>;
var<workgroup> parts: array<vec4<f32>, THREADS>;
var<workgroup> part_totals: array<f32, THREADS>;

//! include: soft_cap

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let end = state[0] + 1u;
    let begin = select(0u, end - min(end, WINDOW), WINDOW != 0u);
    let chunk = group.y;
    let first = begin + chunk * CHUNK;
    if (first >= end) {
        return;
    }
    let count = min(CHUNK, end - first);
    let columns = DH / 4u;
    let stride = KV_HEADS * columns;
    let base = first * stride + group.x * columns;
    let heads = HEADS / KV_HEADS;
    let together = min(heads, BLOCK);
    // With more threads than columns, `slices` of them share a column and take every slices-th position; with fewer,
    // each takes several columns in turn.
    let slices = max(1u, THREADS / columns);
    let own_columns = (columns + THREADS - 1u) / THREADS;
    let own_at_once = min(own_columns, AT_ONCE);
    let lanes = min(min(LANES, ROOM / CHUNK), THREADS);
    let slots = THREADS / lanes;
    let per = clamp(CHUNK / slots, 1u, AT_ONCE);
    for (var block = 0u; block < heads; block += BLOCK) {
        let first_head = group.x * heads + block;
        for (var start = thread / lanes; start < count; start += slots * per) {
            var dots = array<f32, BLOCK * AT_ONCE>(); // set: naga 29 clears no variable each time round by itself
            for (var c = thread % lanes; c < columns; c += lanes) {
                var keys = array<vec4<f32>, AT_ONCE>();
                for (var p = 0u; p < per; p++) {
                    keys[p] = key_at(base + min(start + p * slots, count - 1u) * stride + c);
                }
                for (var h = 0u; h < together; h++) {
                    // A block of a group's last heads may be short: those beyond repeat the last and are dropped.
                    let head = min(first_head + h, (group.x + 1u) * heads - 1u);
                    let query = q[head * columns + c];
                    for (var p = 0u; p < per; p++) {
                        dots[h * AT_ONCE + p] += dot(query, keys[p]);
                    }
                }
            }
            for (var p = 0u; p < per; p++) {
                let i = start + p * slots;
                if (i < count) {
                    for (var h = 0u; h < together; h++) {
                        weights[i * lanes + thread % lanes][h] = dots[h * AT_ONCE + p];
                    }
                }
            }
        }
        workgroupBarrier();
        for (var item = thread; item < together * PARTS; item += THREADS) {
            let h = item % together;
            let part = item / together;
            var most = LOWEST;
            for (var i = part; i < count; i += PARTS) {
                var score = 0.0;
                for (var lane = 0u; lane < lanes; lane++) {
                    score += weights[i * lanes + lane][h];
                }
                score = max(capped(score * SCALE), MASKED);
                weights[i * lanes][h] = score;
                most = max(most, score);
            }
            largest[h][part] = most;
        }
        workgroupBarrier();
        var most = array<f32, BLOCK>();
        for (var h = 0u; h < together; h++) {
            most[h] = LOWEST;
            for (var part = 0u; part < PARTS; part++) {
                most[h] = max(most[h], largest[h][part]);
            }
        }
        for (var i = thread; i < count; i += THREADS) {
            for (var h = 0u; h < together; h++) {
                weights[i * lanes][h] = exp(weights[i * lanes][h] - most[h]);
            }
        }
        workgroupBarrier();
        let slice = select(0u, thread / columns, slices > 1u);
        for (var first_own = 0u; first_own < own_columns; first_own += AT_ONCE) {
            var sums = array<vec4<f32>, BLOCK * AT_ONCE>();
            var totals = array<f32, BLOCK>();
            for (var i = slice; i < count; i += slices) {
                var values = array<vec4<f32>, AT_ONCE>();
                for (var own = 0u; own < own_at_once; own++) {
                    let column = select(thread + (first_own + own) * THREADS, thread % columns, slices > 1u);
                    values[own] = value_at(base + i * stride + min(column, columns - 1u));
                }
                for (var h = 0u; h < together; h++) {
                    let weight = weights[i * lanes][h];
                    totals[h] += weight;
                    for (var own = 0u; own < own_at_once; own++) {
                        sums[h * AT_ONCE + own] += weight * values[own];
                    }
                }
            }
            for (var h = 0u; h < together; h++) {
                if (slices > 1u) {
                    parts[thread] = sums[h * AT_ONCE];
                    part_totals[thread] = totals[h];
                    workgroupBarrier();
                    if (thread < columns) {
                        for (var i = 1u; i < slices; i++) {
                            sums[h * AT_ONCE] += parts[i * columns + thread];
                            totals[h] += part_totals[i * columns + thread];
                        }
                    }
                    workgroupBarrier();
                }
                if (block + h < heads) {
                    let to = ((first_head + h) * MAX_CHUNKS + chunk) * (DH + 2u);
                    for (var own = 0u; own < own_at_once; own++) {
                        let column = thread + (first_own + own) * THREADS;
                        if (column < columns) {
                            let sum = sums[h * AT_ONCE + own];
                            for (var i = 0u; i < 4u; i++) {
                                partials[to + 4u * column + i] = sum[i];
                            }
                        }
                    }
                    if (first_own + thread == 0u) {
                        partials[to + DH] = most[h];
                        partials[to + DH + 1u] = totals[h];
                    }
                }
            }
        }
        workgroupBarrier();
    }
}
