//! op: sample
//! reference: sample_draw
// The next token, drawn: of softmax(penalised logits / temperature) the top_k most probable (of equals the first), of
// these the fewest whose sum reaches top_p of theirs, then in the order of the vocabulary the first at which the
// running sum passes uniform * total. With a temperature of 0 the largest of `argmax_partial`'s. Then the state moves
// on, as in `argmax_final`.
// Grid (1): one workgroup, without a sort and without memory for probabilities. A threshold is found by bisection over
// the ordered bits of f32, here of logits, whose order is that of probabilities: 16 ways a pass over the vocabulary, 8
// passes for top_k (fewer once the number fits), 8 for top_p, each 4 bytes a token (8 with a penalty). Weights are
// exp((logit - largest) / temperature): probabilities times a factor that no comparison needs.
// Sums are f32 in a fixed order, so a seed gives the same on every run; where top_p or the draw falls within some 1e-6
// of a boundary, another device's exp may find the next token. Logits beyond ±1e35 count as that; NaN is never
// drawn.
// uniform is the upper 24 bits of pcg(step + pcg(seed)); pcg: O'Neill's PCG-RXS-M-XS-32 as a hash, as in Jarzynski and
// Olano, "Hash Functions for GPU Rendering", JCGT 9(3), 2020.
override V: u32;
override GROUPS: u32;
override THREADS: u32 = 256u;

@group(0) @binding(0) var<storage, read_write> state: array<u32>;
@group(0) @binding(1) var<storage, read_write> tokens: array<u32>;
@group(0) @binding(2) var<storage, read> logits: array<f32>;
@group(0) @binding(3) var<storage, read> seen: array<u32>;
@group(0) @binding(4) var<storage, read> sampling: array<u32>;
@group(0) @binding(5) var<storage, read> partials: array<u32>;

const LANES = 16u; // partial sums that every thread adds up itself
const WAYS = 16u; // of the bisection
const BOUND = 1e35;
const COUNT = 0u; // stages: keep by top_k, keep by top_p, draw
const SHARE = 1u;
const DRAW = 2u;

struct Entry {
    key: u32,
    weight: f32,
}

struct Reached {
    key: u32,
    above: f32, // the sum of greater keys
    sum: f32, // that, and of this key
    wanted: f32,
}

var<workgroup> numbers: array<vec4<f32>, THREADS>;
var<workgroup> lanes: array<array<vec4<f32>, LANES>, 4>;
var<workgroup> best_keys: array<u32, LANES>;
var<workgroup> best_tokens: array<u32, LANES>;
var<workgroup> goal: f32;
var<workgroup> before: f32;
var<workgroup> segment: u32;
var<workgroup> place: u32;
var<workgroup> flag: u32;

// The same in all threads, but for `thread`.
var<private> thread: u32;
var<private> penalty: f32;
var<private> temperature: f32;
var<private> largest: f32;
var<private> threshold: u32; // kept are greater keys, and this one up to and with the token `last`
var<private> last: u32;

//! include: key_of

fn logit_of(key: u32) -> f32 {
    return bitcast<f32>(select(~key, key & 0x7fffffffu, key >= 0x80000000u));
}

fn weight_of(key: u32) -> f32 {
    return exp(max((logit_of(key) - largest) / temperature, -200.0)); // of which exp is 0 in f32
}

// A token's key, and its weight where it is kept, 1 where it is counted.
fn entry(token: u32, counting: bool) -> Entry {
    var logit = logits[token];
    if (key_of(bitcast<u32>(logit)) == 0u) {
        return Entry(0u, 0.0);
    }
    if (penalty != 1.0 && seen[token] != 0u) {
        logit = select(logit * penalty, logit / penalty, logit > 0.0);
    }
    let key = key_of(bitcast<u32>(clamp(logit, -BOUND, BOUND)));
    if (key < threshold || (key == threshold && token > last)) {
        return Entry(key, 0.0);
    }
    if (counting) {
        return Entry(key, 1.0);
    }
    return Entry(key, weight_of(key));
}

// The greatest key such that what is kept and has it or a greater one adds up to `number` tokens, or to `share` of all.
fn reach(number: f32, share: f32, counting: bool) -> Reached {
    var found = Reached(0u, 0.0, 0.0, number);
    for (var shift = 28i; shift >= 0; shift -= 4) {
        var sums = array<vec4<f32>, 4>(); // set: naga 29 clears no variable each time round by itself
        for (var token = thread; token < V; token += THREADS) {
            let each = entry(token, counting);
            if (each.weight > 0.0 && each.key >= found.key) {
                let ways = vec4(min((each.key - found.key) >> u32(shift), WAYS - 1u));
                for (var part = 0u; part < 4u; part++) {
                    let way = 4u * part + vec4(0u, 1u, 2u, 3u);
                    sums[part] += select(vec4(0.0), vec4(each.weight), ways >= way);
                }
            }
        }
        for (var part = 0u; part < 4u; part++) {
            numbers[thread] = sums[part];
            workgroupBarrier();
            for (var lane = thread; lane < LANES; lane += THREADS) {
                var sum = vec4(0.0);
                for (var i = lane; i < THREADS; i += LANES) {
                    sum += numbers[i];
                }
                lanes[part][lane] = sum;
            }
            workgroupBarrier();
        }
        let base = found.key;
        for (var way = 0u; way < WAYS; way++) {
            var sum = 0.0;
            for (var lane = 0u; lane < LANES; lane++) {
                sum += lanes[way / 4u][lane][way % 4u];
            }
            if (!counting && shift == 28 && way == 0u) {
                found.wanted = share * sum;
            }
            if (way == 0u || sum >= found.wanted) {
                found.key = base + (way << u32(shift));
                found.sum = sum;
            } else {
                found.above = sum;
                break;
            }
        }
        // The number exactly: smaller digits would change nothing.
        if (thread == 0u) {
            flag = u32(counting && found.sum == number);
        }
        if (workgroupUniformLoad(&flag) != 0u) {
            break;
        }
    }
    return found;
}

fn weight_in(token: u32, equals: bool, key: u32) -> f32 {
    let each = entry(token, equals);
    return select(each.weight, 0.0, equals && each.key != key);
}

// The first token at which the running sum of what is kept passes `share` of the whole; or, of the tokens that are kept
// and have this key (`equals`), the one by the number `share` + 1/2.
fn locate(share: f32, equals: bool, key: u32) -> u32 {
    let size = (V + THREADS - 1u) / THREADS;
    let first = min(thread * size, V);
    let end = min(first + size, V);
    var own = 0.0;
    for (var token = first; token < end; token++) {
        own += weight_in(token, equals, key);
    }
    numbers[thread].x = own;
    workgroupBarrier();
    if (thread == 0u) {
        var total = 0.0;
        for (var i = 0u; i < THREADS; i++) {
            total += numbers[i].x;
        }
        goal = select(share * total, share, equals);
        var running = 0.0;
        for (var i = 0u; i < THREADS && running <= goal; i++) {
            if (numbers[i].x > 0.0) {
                segment = i;
                before = running;
                running += numbers[i].x;
            }
        }
    }
    workgroupBarrier();
    if (thread == segment) {
        var running = before;
        for (var token = first; token < end && running <= goal; token++) {
            let weight = weight_in(token, equals, key);
            if (weight > 0.0) {
                running += weight;
                place = token;
            }
        }
    }
    workgroupBarrier();
    return place;
}

fn pcg(number: u32) -> u32 {
    let state = number * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return (word >> 22u) ^ word;
}

//! include: step_on

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) index: u32) {
    thread = index;
    temperature = bitcast<f32>(sampling[0]);
    penalty = bitcast<f32>(sampling[4]);
    threshold = 0u;
    last = V;
    for (var lane = thread; lane < LANES; lane += THREADS) {
        best_keys[lane] = 0u;
        best_tokens[lane] = 0xffffffffu;
        for (var i = lane; i < GROUPS; i += LANES) {
            let key = key_of(partials[2u * i]);
            let token = partials[2u * i + 1u];
            if (key > best_keys[lane] || (key == best_keys[lane] && token < best_tokens[lane])) {
                best_keys[lane] = key;
                best_tokens[lane] = token;
            }
        }
    }
    workgroupBarrier();
    var key = 0u;
    var token = 0xffffffffu;
    for (var lane = 0u; lane < LANES; lane++) {
        if (best_keys[lane] > key || (best_keys[lane] == key && best_tokens[lane] < token)) {
            key = best_keys[lane];
            token = best_tokens[lane];
        }
    }
    if (sampling[0] != 0u) {
        largest = clamp(logit_of(key), -BOUND, BOUND);
        if (thread == 0u) {
            place = token; // stays where every logit is NaN
        }
        // One loop, so that a compiler that inlines everything has `reach` and `locate` once.
        for (var stage = COUNT; stage <= DRAW; stage++) {
            if (stage == COUNT && (sampling[1] == 0u || sampling[1] >= V)) {
                continue;
            }
            if (stage == SHARE && bitcast<f32>(sampling[2]) >= 1.0) {
                continue;
            }
            var reached = Reached(0u, 0.0, 0.0, 0.0);
            var share = 0.0;
            var searches = true;
            if (stage == DRAW) {
                if (thread == 0u) { // who alone may read `state`: it is the one that writes it
                    share = f32(pcg(state[2] + pcg(sampling[3])) >> 8u) * 0x1p-24;
                }
            } else {
                reached = reach(f32(sampling[1]), bitcast<f32>(sampling[2]), stage == COUNT);
                // Of those equal to the key, the first `rank` are enough.
                let each = select(max(weight_of(reached.key), 1e-37), 1.0, stage == COUNT);
                let rank = max(1.0, ceil((reached.wanted - reached.above) / each));
                searches = rank < (reached.sum - reached.above) / each - 0.5;
                share = rank - 0.5;
            }
            if (thread == 0u) {
                flag = u32(searches);
            }
            var found = V;
            if (workgroupUniformLoad(&flag) != 0u) {
                found = locate(share, stage != DRAW, reached.key);
            }
            if (stage == DRAW) {
                token = found;
            } else {
                last = select(found, min(found, last), reached.key == threshold);
                threshold = reached.key;
            }
        }
    }
    if (thread == 0u) {
        step_on(token);
    }
}
