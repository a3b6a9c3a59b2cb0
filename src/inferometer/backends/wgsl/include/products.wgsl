// Uses the kernel's COLUMNS and weight.
//! include: product

// Of four columns whose weights are at these places; those beyond COLUMNS cost nothing.
fn products(at: vec4<u32>, low: vec4<f32>, high: vec4<f32>) -> vec4<f32> {
    var sums = vec4(product(weight[at.x], low, high), 0.0, 0.0, 0.0);
    if (COLUMNS > 1u) {
        sums.y = product(weight[at.y], low, high);
    }
    if (COLUMNS > 2u) {
        sums.z = product(weight[at.z], low, high);
        sums.w = product(weight[at.w], low, high);
    }
    return sums;
}
