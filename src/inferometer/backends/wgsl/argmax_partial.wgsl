//! op: argmax
//! reference: argmax_partial
// The largest logit of each of GROUPS equal stretches of the vocabulary, penalised where its token was seen, and its
// index; of equals the lowest. `argmax_final` and `sample_draw` take the largest of these.
// Grid (GROUPS). Compared are bits of f32, turned so that their order as u32 is the order of the numbers: exact on
// every device, whatever it does with NaN, which comes last here. A stretch without tokens leaves the key 0.
// Leaves [GROUPS, 2]: bits of the logit, index. Memory: 8 bytes a token.
override V: u32;
override GROUPS: u32;
override THREADS: u32 = 64u;

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read> seen: array<u32>;
@group(0) @binding(2) var<storage, read> sampling: array<u32>;
@group(0) @binding(3) var<storage, read_write> partials: array<u32>;

var<workgroup> keys: array<u32, THREADS>;
var<workgroup> tokens: array<u32, THREADS>;

fn penalised(token: u32, penalty: f32) -> f32 {
    let logit = logits[token];
    if (penalty == 1.0 || seen[token] == 0u) {
        return logit;
    }
    return select(logit * penalty, logit / penalty, logit > 0.0);
}

//! include: key_of

fn bits_of(key: u32) -> u32 {
    return select(~key, key & 0x7fffffffu, key >= 0x80000000u);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let penalty = bitcast<f32>(sampling[4]);
    let size = (V + GROUPS - 1u) / GROUPS;
    let first = min(group.x * size, V);
    let end = min(first + size, V);
    var best = 0u;
    var token = first;
    for (var i = first + thread; i < end; i += THREADS) {
        let key = key_of(bitcast<u32>(penalised(i, penalty)));
        if (key > best) {
            best = key;
            token = i;
        }
    }
    keys[thread] = best;
    tokens[thread] = token;
    for (var half = THREADS / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (thread < half) {
            let key = keys[thread + half];
            let other = tokens[thread + half];
            if (key > keys[thread] || (key == keys[thread] && other < tokens[thread])) {
                keys[thread] = key;
                tokens[thread] = other;
            }
        }
    }
    if (thread == 0u) {
        partials[2u * group.x] = bits_of(keys[0]);
        partials[2u * group.x + 1u] = tokens[0];
    }
}
