// Four numbers of the cache at once, in either format. Uses the kernel's CACHE, and its k and v in words of two.
//! include: cache_formats

// Keys 4 * i to 4 * i + 3.
fn key_at(i: u32) -> vec4<f32> {
    if (CACHE == CACHE_F32) {
        return bitcast<vec4<f32>>(vec4(k[2u * i], k[2u * i + 1u]));
    }
    return vec4(unpack2x16float(k[i].x), unpack2x16float(k[i].y));
}

// As key_at, of values.
fn value_at(i: u32) -> vec4<f32> {
    if (CACHE == CACHE_F32) {
        return bitcast<vec4<f32>>(vec4(v[2u * i], v[2u * i + 1u]));
    }
    return vec4(unpack2x16float(v[i].x), unpack2x16float(v[i].y));
}
