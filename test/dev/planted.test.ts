import { expect, test } from 'bun:test'
import { chownSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gatehouse } from '#test/support/executable.ts'

test('gatehouse token asks no server in a temporary directory that another OS user has made', async () => {
  const temporary = mkdtempSync(join(tmpdir(), 'gatehouse-test-'))
  const planted = join(temporary, 'gatehouse-dev-planted')
  mkdirSync(planted)
  const asked: string[] = []
  using other = Bun.serve({ port: 0, fetch: ({ url }) => Response.json({ token: asked.push(url) }) })
  const local_url = other.url.origin
  const dev = { url: local_url, local_url, pid: process.pid, control_token: 'known' }
  writeFileSync(join(planted, 'dev.json'), JSON.stringify(dev))
  const token = () =>
    gatehouse(['token', '--user', 'alice'], {
      TMPDIR: temporary,
      GATEHOUSE_DATA_DIR: join(temporary, 'data'),
    })
  await token()
  expect(asked).toEqual([`${local_url}/dev/mint`])
  if (process.getuid?.() !== 0) return console.log('left out: only root may give a directory away')
  chownSync(planted, 65_534, 65_534)
  expect(await token()).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no development server is running on a temporary directory'),
  })
  expect(asked).toHaveLength(1)
})
