//! op: copy
//! reference: copy
// out = x, WORDS vectors of four: what an adapter's memory moves a second, and with one workgroup what a launch takes.
// Grid (groups): the threads of all workgroups walk through the vectors side by side, so any grid does.
// Memory: 16 * WORDS bytes read, as many written.
override WORDS: u32;
override THREADS: u32 = 256u;

@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4<u32>>;

@compute @workgroup_size(THREADS)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * THREADS;
    var i = id.x;
    for (; i + 3u * stride < WORDS; i += 4u * stride) { // four loads in flight
        out[i] = x[i];
        out[i + stride] = x[i + stride];
        out[i + 2u * stride] = x[i + 2u * stride];
        out[i + 3u * stride] = x[i + 3u * stride];
    }
    for (; i < WORDS; i += stride) {
        out[i] = x[i];
    }
}
