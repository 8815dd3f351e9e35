import { expect, test } from 'bun:test'
import { SQL } from 'bun'
import { requireServer } from '#src/storage/postgres/connect.ts'
import { openPostgres } from '#src/storage/postgres/store.ts'
import { testOnPostgres } from '#test/support/on-postgres.ts'
import { temporaryPostgres } from '#test/support/postgres.ts'

const POOLER = 'this is a pooler that refuses or drops session parameters; connect to PostgreSQL itself'

test.each<[string, string, number, string?]>([
  ['08P01', 'unsupported startup parameter: enable_seqscan', 78, POOLER],
  ['08P01', 'no such database: x', 78],
  ['08P01', 'no more connections allowed (max_client_conn)', 75],
  ['57P04', 'database "x" does not exist any more', 78],
  ['57P05', 'terminating connection', 75],
])('a pooler or server refuses with %s, %s', async (code, message, exit_code, said = message) => {
  const fields = Buffer.from(`SFATAL\0C${code}\0M${message}\0\0`)
  const head = Buffer.alloc(5, 'E')
  head.writeInt32BE(fields.length + 4, 1)
  using server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: { data: socket => void socket.end(Buffer.concat([head, fields])) },
  })
  await expect(openPostgres({ url: `postgres://u:p@127.0.0.1:${server.port}/x` })).rejects.toMatchObject({
    message: `PostgreSQL at 127.0.0.1:${server.port}, database x: ${said}.`,
    exit_code,
  })
})

testOnPostgres('a connection without the session parameters is refused', async () => {
  const { url, drop } = await temporaryPostgres(true)
  const sql = new SQL({ url, max: 1 })
  await expect(requireServer(sql, 'here')).rejects.toMatchObject({
    message: `here: ${POOLER}.`,
    exit_code: 78,
  })
  await sql.close()
  await drop()
})
