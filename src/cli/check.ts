import { loadConfig } from '#src/config.ts'
import { silentLog } from '#src/lib/log.ts'
import { checkEvents, checkKeys, checkSealed } from '#src/operations/check.ts'
import { inspectPostgres } from '#src/storage/postgres/inspect.ts'
import { withReadOnly } from '#src/storage/sqlite/backup.ts'
import { inspect } from '#src/storage/sqlite/inspect.ts'
import { openExisting, requireDatabase } from './instance.ts'
import { print } from './print.ts'
import { stage, sum } from './progress.ts'

/**
 * Reads the whole database. If the database is consistent, the command opens the signing keys and the stored
 * secrets, and checks the events. In a damaged database these checks would only report the same damage again.
 * A server may run meanwhile.
 *
 * @throws Error when damage is found, after all findings are printed
 */
export const check = async (options: { config?: string }): Promise<void> => {
  const { config } = loadConfig(process.env, options.config)
  const findings: string[] = []
  stage('reading the database')
  const { database_url } = config
  const inspected = database_url
    ? await inspectPostgres(database_url)
    : withReadOnly(requireDatabase(config), db => inspect(db, stage))
  findings.push(...inspected.findings)
  if (findings.length === 0) {
    const held = database_url ? 'totals are consistent' : 'structure, references and totals are consistent'
    print(`database  ${sum(inspected.rows)} rows: ${held}`)
    const instance = await openExisting(config, silentLog)
    try {
      stage('opening the keys')
      const keys = await checkKeys(instance)
      findings.push(...keys.findings)
      if (keys.findings.length === 0)
        print(`keys      ${keys.count} can be opened and match their published keys`)
      stage('opening the secrets')
      const sealed = await checkSealed(instance)
      findings.push(...sealed.findings)
      if (sealed.findings.length === 0) print(`secrets   ${sealed.count} can be opened`)
      stage('reading the audit log')
      const events = await checkEvents(instance)
      findings.push(...events.findings)
      if (events.findings.length === 0) print(`events    ${events.count} are unchanged`)
      print('limits    deleted events, and changed texts outside the audit log, are not detected')
    } finally {
      await instance.store.close()
    }
  }
  for (const finding of findings) print(`damaged   ${finding}`)
  if (findings.length > 0) throw new Error('this instance is damaged: restore a backup')
}
