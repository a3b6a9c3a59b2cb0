//! op: sample
//! reference: argmax_final
// The next token where nothing is drawn: the largest of `argmax_partial`'s, of equals the lowest index. It is written
// behind the row's token, and the state moves on to the next step, all on the device.
// After a stop token the first stop token is written again, so that the rest of a batch is harmless.
// Grid (1). `state` is of one thread alone: others would read what that one writes.
override GROUPS: u32;
override THREADS: u32 = 64u;

@group(0) @binding(0) var<storage, read_write> state: array<u32>;
@group(0) @binding(1) var<storage, read_write> tokens: array<u32>;
@group(0) @binding(2) var<storage, read> sampling: array<u32>;
@group(0) @binding(3) var<storage, read> partials: array<u32>;

var<workgroup> keys: array<u32, THREADS>;
var<workgroup> indices: array<u32, THREADS>;

//! include: key_of

//! include: step_on

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) thread: u32) {
    var best = 0u;
    var index = 0xffffffffu;
    for (var i = thread; i < GROUPS; i += THREADS) {
        let key = key_of(partials[2u * i]);
        let other = partials[2u * i + 1u];
        if (key > best || (key == best && other < index)) {
            best = key;
            index = other;
        }
    }
    keys[thread] = best;
    indices[thread] = index;
    for (var half = THREADS / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (thread < half) {
            let key = keys[thread + half];
            let other = indices[thread + half];
            if (key > keys[thread] || (key == keys[thread] && other < indices[thread])) {
                keys[thread] = key;
                indices[thread] = other;
            }
        }
    }
    if (thread == 0u) {
        step_on(indices[0]);
    }
}
