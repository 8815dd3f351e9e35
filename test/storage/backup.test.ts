import { expect, test } from 'bun:test'
import { chmodSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { backUp, restore } from '#src/storage/backup.ts'
import { temporaryDatabase } from '#test/support/store.ts'

const folder = mkdtempSync(join(tmpdir(), 'gatehouse-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8)

test('a database is for its owner alone, whoever may read the backup that it comes from', async () => {
  const [backup, target] = [join(folder, 'backup.db'), join(folder, 'gatehouse.db')]
  await backUp(await temporaryDatabase(), backup)
  expect(modeOf(backup)).toBe('600')
  chmodSync(backup, 0o644)
  await restore(backup, target, async partial => expect(modeOf(partial)).toBe('600'))
  expect([modeOf(target), modeOf(backup)]).toEqual(['600', '644'])
})
