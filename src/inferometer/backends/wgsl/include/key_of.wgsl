// The order of f32 as u32: greater numbers have greater keys, and NaN has 0, the least.
fn key_of(bits: u32) -> u32 {
    if ((bits & 0x7fffffffu) > 0x7f800000u) {
        return 0u;
    }
    if (bits == 0x80000000u) { // -0 equals 0
        return 0x80000000u;
    }
    return select(bits | 0x80000000u, ~bits, bits >= 0x80000000u);
}
