// Uses the kernel's COLUMNS, gate and up.
//! include: product

// Of four columns whose weights are at these places; those beyond COLUMNS cost nothing.
fn gate_products(at: vec4<u32>, low: vec4<f32>, high: vec4<f32>) -> vec4<f32> {
    var sums = vec4(product(gate[at.x], low, high), 0.0, 0.0, 0.0);
    if (COLUMNS > 1u) {
        sums.y = product(gate[at.y], low, high);
    }
    if (COLUMNS > 2u) {
        sums.z = product(gate[at.z], low, high);
        sums.w = product(gate[at.w], low, high);
    }
    return sums;
}

fn up_products(at: vec4<u32>, low: vec4<f32>, high: vec4<f32>) -> vec4<f32> {
    var sums = vec4(product(up[at.x], low, high), 0.0, 0.0, 0.0);
    if (COLUMNS > 1u) {
        sums.y = product(up[at.y], low, high);
    }
    if (COLUMNS > 2u) {
        sums.z = product(up[at.z], low, high);
        sums.w = product(up[at.w], low, high);
    }
    return sums;
}
