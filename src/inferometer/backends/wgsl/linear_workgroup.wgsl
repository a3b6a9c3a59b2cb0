//! op: linear
//! reference: linear
// out = x · weight + bias of one row: the first, or the last of the pass (LAST_ROW), which becomes row 0 of out.
// For GPUs: COLUMNS columns a workgroup, whose threads split K. Neighbours read neighbouring vec4s of one weight row
// (whole cache lines), four rows at a time (loads in flight), and each vec4 of x serves four columns.
// Grid (ceil(N / COLUMNS)), also over y: the workgroup's number is y * (width of the grid) + x.
// One barrier a block of four columns, then a thread a column adds what all left behind. K is a multiple of 8.
// Memory: N * K f16, K f32 read (x comes from cache for all workgroups but the first), N f32 written.
override K: u32;
override N: u32;
override HAS_BIAS: u32 = 0u;
override OUT0: u32 = 0u;
override STRIDE: u32;
override LAST_ROW: u32 = 0u;
override ADD: u32 = 0u; // 1: to what is in out
override THREADS: u32 = 64u;
override COLUMNS: u32 = 4u;

@group(0) @binding(0) var<storage, read> state: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weight: array<vec4<u32>>;
@group(0) @binding(3) var<storage, read> bias: array<f32>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;

var<workgroup> partials: array<vec4<f32>, THREADS>; // of a thread, its sums for the block's four columns

//! include: product

fn weight_product(at: u32, low: vec4<f32>, high: vec4<f32>) -> f32 {
    return product(weight[at], low, high);
}

//! include: linear_by_workgroup
