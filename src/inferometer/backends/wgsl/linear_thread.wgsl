//! op: linear
//! reference: linear
// out = x · weight + bias of one row: the first, or the last of the pass (LAST_ROW), which becomes row 0 of out.
// COLUMNS columns a thread, eight at a time: a vec4 of x, loaded once, serves them all, and as many loads of weights
// are in flight. Two steps of K a turn, all unrolled by hand: as loops over arrays it ran a fifth slower on lavapipe.
// No barrier and no workgroup memory: the fastest on CPU adapters (COLUMNS 8). On GPUs neighbours read different weight
// rows; a cache line is used up over eight steps, if the cache holds a line a thread that long.
// Grid (ceil(N / (THREADS * COLUMNS))), also over y: the workgroup's number is y * (width of the grid) + x.
// Of weights that aren't f16, K goes by blocks of 32, whose numbers of x serve all columns.
// Memory: N * K weights and K f32 read, N f32 written; K is a multiple of 8, of 32 where weights aren't f16.
override K: u32;
override N: u32;
override HAS_BIAS: u32 = 0u;
override OUT0: u32 = 0u;
override STRIDE: u32;
override LAST_ROW: u32 = 0u;
override ADD: u32 = 0u; // 1: to what is in out
override WEIGHTS: u32 = 0u; // how they lie: weight_formats.wgsl
override THREADS: u32 = 64u;
override COLUMNS: u32 = 1u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

//! include: products
//! include: block_products

fn words(is_second: bool, at: u32) -> vec4<u32> {
    return weight[at];
}

fn word(is_second: bool, at: u32, component: u32) -> u32 {
    return weight[at][component];
}

fn write(column: vec4<u32>, sums: vec4<f32>) {
    for (var c = 0u; c < min(COLUMNS, 4u); c++) {
        if (column[c] < N) {
            var value = sums[c];
            if (HAS_BIAS == 1u) {
                value += bias[column[c]];
            }
            if (ADD == 1u) {
                value += out[OUT0 + column[c]];
            }
            out[OUT0 + column[c]] = value;
        }
    }
}

@compute @workgroup_size(THREADS)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    if (state[1] == 0u) {
        return;
    }
    let eights = K / 8u;
    let first = (group.y * groups.x + group.x) * THREADS * COLUMNS + thread;
    let row = select(0u, 2u * eights * (state[1] - 1u), LAST_ROW == 1u);
    for (var block = 0u; block < COLUMNS; block += 8u) {
        let column = first + (block + vec4(0u, 1u, 2u, 3u)) * THREADS;
        let near = min(column, vec4(N - 1u)) * eights;
        let far = min(column + 4u * THREADS, vec4(N - 1u)) * eights;
        var sums = vec4(0.0);
        var more = vec4(0.0);
        for (var start = 0u; WEIGHTS != F16 && start < K / 32u; start += blocks_of_a_scale()) {
            let of_256 = super_words_at(false, column, start);
            let more_256 = super_words_at(false, column + 4u * THREADS, start);
            for (var b = start; b < start + blocks_of_a_scale(); b++) {
                let inputs = read_inputs(row + 8u * b);
                sums += block_products(false, column, b, of_256, inputs);
                if (COLUMNS > 4u) {
                    more += block_products(false, column + 4u * THREADS, b, more_256, inputs);
                }
            }
        }
        for (var i = 0u; WEIGHTS == F16 && i < eights; i += 2u) {
            let low = x[row + 2u * i];
            let high = x[row + 2u * i + 1u];
            sums += products(near + i, low, high);
            if (COLUMNS > 4u) {
                more += products(far + i, low, high);
            }
            if (K % 16u == 0u || i + 1u < eights) {
                let next_low = x[row + 2u * i + 2u];
                let next_high = x[row + 2u * i + 3u];
                sums += products(near + i + 1u, next_low, next_high);
                if (COLUMNS > 4u) {
                    more += products(far + i + 1u, next_low, next_high);
                }
            }
        }
        write(column, sums);
        if (COLUMNS > 4u) {
            write(column + 4u * THREADS, more);
        }
    }
}
