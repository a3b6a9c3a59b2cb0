//! op: read_sum
//! reference: read_sum
// out[i] = the sum of the vectors that thread i of all walks over: what an adapter's memory gives a second when hardly
// anything is written back, as weights are read.
// Grid (groups): as `copy`. Memory: 16 * WORDS bytes read, 16 a thread written.
override WORDS: u32;
override THREADS: u32 = 256u;

@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4<u32>>;

@compute @workgroup_size(THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * THREADS;
    var sum = vec4(0u);
    var i = id.x;
    for (; i + 3u * stride < WORDS; i += 4u * stride) { // four loads in flight
        sum += x[i] + x[i + stride] + x[i + 2u * stride] + x[i + 3u * stride];
    }
    for (; i < WORDS; i += stride) {
        sum += x[i];
    }
    out[id.x] = sum;
}
