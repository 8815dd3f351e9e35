import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { gatehouse, serveExecutable, stop } from '#test/support/executable.ts'

test('check ends with 1 for a changed event and for a secret that cannot be opened, and names both', async () => {
  await using server = await serveExecutable()
  const { body } = await server.admin('POST', '/webhooks', {
    name: 'hook',
    url: 'https://hooks.example.com/',
    events: ['*'],
  })
  await stop(server)
  const path = join(server.data_dir, 'gatehouse.db')
  const { seq, sql } = (() => {
    using db = new Database(path, { readonly: true })
    const [[first] = []] = db.query('SELECT min(seq) FROM events').values()
    const [[trigger] = []] = db
      .query("SELECT sql FROM sqlite_schema WHERE name = 'events_immutable'")
      .values()
    return { seq: Number(first), sql: String(trigger) }
  })()
  const check = () => gatehouse(['check'], { GATEHOUSE_DATA_DIR: server.data_dir })
  expect(await check()).toMatchObject({ code: 0, stderr: '' })
  const change = (...statements: string[]) => {
    using db = new Database(path)
    for (const statement of statements) db.run(statement)
  }
  const damaged = 'gatehouse: this instance is damaged: restore a backup\n'
  change('UPDATE webhooks SET secret = zeroblob(60)')
  const secret = `damaged   secrets: the secret of the webhook ${body.id} cannot be opened\n`
  const first = await check()
  expect([first.code, first.stderr]).toEqual([1, damaged])
  expect(first.stdout).toContain(secret)
  expect(first.stdout).toMatch(/^events +\d+ are unchanged$/m)
  change('DELETE FROM webhooks', 'DROP TRIGGER events_immutable')
  change(`UPDATE events SET actor_id = 'somebody' WHERE seq = ${seq}`, sql)
  const second = await check()
  expect([second.code, second.stderr]).toEqual([1, damaged])
  expect(second.stdout).toContain(`damaged   events: event ${seq} differs from what was recorded\n`)
  expect(second.stdout).toMatch(/^secrets +\d+ can be opened$/m)
}, 60_000)
