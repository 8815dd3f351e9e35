/**
 * A value of the data section: a text, a number, a list or a table. A number has 16 bits unless it is `wide`.
 * https://maxmind.github.io/MaxMind-DB/
 */
type Value = string | number | { wide: number } | Value[] | { [name: string]: Value }

const control = (type: number, size: number): Buffer =>
  type > 7 ? Buffer.from([size, type - 7]) : Buffer.from([(type << 5) | size])

const number = (type: number, value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  const significant = bytes.subarray(bytes.findIndex(byte => byte > 0))
  return Buffer.concat([
    control(type, value === 0 ? 0 : significant.length),
    value === 0 ? Buffer.alloc(0) : significant,
  ])
}

const encode = (value: Value): Buffer => {
  if (typeof value === 'string') {
    const text = Buffer.from(value)
    return Buffer.concat([control(2, text.length), text])
  }
  if (typeof value === 'number') return number(5, value)
  if (Array.isArray(value)) return Buffer.concat([control(11, value.length), ...value.map(encode)])
  if (typeof value.wide === 'number') return number(6, value.wide)
  const entries = Object.entries(value) as [string, Value][]
  return Buffer.concat([
    control(7, entries.length),
    ...entries.flatMap(([name, member]) => [encode(name), encode(member)]),
  ])
}

/** Returns a file of places with one network of 256 IPv4 addresses. */
export const mmdb = (network: [number, number, number], place: Value): Buffer =>
  mmdbOf(network, encode(place))

/**
 * Like `mmdb`, but takes the bytes of the record. The bytes can include further parts of the data section.
 */
export const mmdbOf = (network: [number, number, number], record: Uint8Array): Buffer => {
  const bits = network.flatMap(byte => [7, 6, 5, 4, 3, 2, 1, 0].map(shift => (byte >> shift) & 1))
  const count = bits.length
  const tree = Buffer.alloc(count * 6)
  bits.forEach((bit, node) => {
    const next = node + 1 < count ? node + 1 : count + 16
    tree.writeUIntBE(bit === 0 ? next : count, node * 6, 3)
    tree.writeUIntBE(bit === 1 ? next : count, node * 6 + 3, 3)
  })
  const metadata = encode({
    binary_format_major_version: 2,
    binary_format_minor_version: 0,
    build_epoch: { wide: 1_700_000_000 },
    database_type: 'Test-City',
    description: { en: 'Test' },
    ip_version: 4,
    languages: ['en'],
    node_count: { wide: count },
    record_size: 24,
  })
  const marker = Buffer.concat([Buffer.from([0xab, 0xcd, 0xef]), Buffer.from('MaxMind.com')])
  return Buffer.concat([tree, Buffer.alloc(16), record, marker, metadata])
}
