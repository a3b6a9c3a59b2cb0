// Packed columns, as pack.py documents them, into typed arrays.

async function gunzip(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function unpack(packed) {
  const bytes = await gunzip(packed);
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  if (view.getUint32(0, false) !== 0x4946544c || view.getUint32(4, true) !== 1) {
    throw new Error("time line: expected packed columns of version 1, found something else");
  }
  const length = view.getUint32(8, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(12, 12 + length)));
  const columns = {};
  let at = 12 + length;
  for (const [name, size, width] of header.columns) {
    columns[name] = name === "value" ? doubles(bytes, at, size) : wholes(bytes, at, size, width);
    at += size * width;
  }
  return { header, columns };
}

function wholes(bytes, at, size, width) {
  const planes = Array.from({ length: width }, (_, plane) => bytes.subarray(at + plane * size, at + (plane + 1) * size));
  if (width < 2) return new Uint32Array(planes[0] ?? size);
  const values = width <= 4 ? new Uint32Array(size) : new Float64Array(size);
  const [lowest, second, ...others] = planes;
  for (let i = 0; i < size; i += 1) values[i] = lowest[i] + second[i] * 256;
  let factor = 65536;
  for (const plane of others) {
    for (let i = 0; i < size; i += 1) values[i] += plane[i] * factor;
    factor *= 256;
  }
  return values;
}

function doubles(bytes, at, size) {
  const values = new Float64Array(size);
  const raw = new Uint8Array(values.buffer);
  for (let plane = 0; plane < 8; plane += 1) {
    for (let i = 0; i < size; i += 1) raw[8 * i + plane] = bytes[at + plane * size + i];
  }
  return values;
}

// What is packed as differences, as itself again.

function partEnds(sizes) {
  const ends = new Uint32Array(sizes.length + 1);
  for (let i = 0; i < sizes.length; i += 1) ends[i + 1] = ends[i] + sizes[i];
  return ends;
}

function startsOf(gap, dur, ends) {
  const start = new Float64Array(gap.length);
  for (let part = 0; part + 1 < ends.length; part += 1) {
    let before = 0;
    for (let i = ends[part]; i < ends[part + 1]; i += 1) {
      start[i] = before + gap[i];
      before = dur ? start[i] + dur[i] : start[i];
    }
  }
  return start;
}

// Zigzag differences, added up from `before` on.
function summed(packed, before) {
  const values = new Float64Array(packed.length);
  let sum = before;
  for (let i = 0; i < packed.length; i += 1) {
    sum += packed[i] % 2 ? -(packed[i] + 1) / 2 : packed[i] / 2;
    values[i] = sum;
  }
  return values;
}
