import { z } from 'zod'
import { record } from '#src/audit/record.ts'
import type { Context } from '#src/context.ts'
import { integer } from '#src/directory/fields.ts'
import { type AdminRoute, type RouteInput, route, writeAs } from '#src/http/guard.ts'
import { DAY, HOUR, parseDuration } from '#src/lib/duration.ts'
import { DEFAULT_ORGANIZATION } from '#src/lib/ids.ts'
import { getSetting, putSetting } from '#src/storage/settings.ts'
import type { Queries } from '#src/storage/store.ts'

const duration = (min: number, max: number, allowed: string) =>
  z.string(allowed).refine(text => {
    const ms = parseDuration(text) ?? 0
    return ms >= min && ms <= max
  }, allowed)

/**
 * A rotation every 90 days limits how long a signing key that leaked unnoticed can be used. More frequent
 * rotations would make caches fetch the key set more often. By default no backups are scheduled, because only
 * the operator knows whether the disk has room for copies of the database. Seven daily backups cover a week.
 */
const defaults = { key_rotation_interval: '90d', backup_interval: null, backup_keep: 7 }

/**
 * Settings that an administrator may change at run time. Settings that could hide or destroy evidence are
 * left to the environment and the settings file.
 */
const ServerSettings = z
  .strictObject({
    key_rotation_interval: duration(DAY, 365 * DAY, 'A duration from 1d to 365d.').describe(
      'Time between two rotations of the signing keys, such as `90d`.',
    ),
    backup_interval: duration(HOUR, 365 * DAY, 'A duration from 1h to 365d, or null.')
      .nullable()
      .describe(
        'Time between backups, which are kept in `backups` in the data directory; `null`: none are scheduled.',
      ),
    backup_keep: integer(1, 365).describe('Number of backups to keep.'),
  })
  .meta({ id: 'ServerSettings', description: 'Settings of the server.', example: defaults })
const UpdateServerSettings = ServerSettings.partial().meta({
  id: 'UpdateServerSettings',
  description: 'The settings to change. Omitted settings stay unchanged.',
  example: { backup_interval: '1d', backup_keep: 14 },
})
type ServerSettings = z.output<typeof ServerSettings>

const NAME = 'server'

/** Reads the settings of the instance, with defaults. */
export const readSettings = async (q: Queries): Promise<ServerSettings> => ({
  ...defaults,
  ...(await getSetting<Partial<ServerSettings>>(q, NAME)),
})

/**
 * Changes only the given settings. A client that was written for an older version thus leaves newer settings
 * unchanged. One event names the changed settings. A call that changes nothing records no event.
 */
const update = (
  context: Context,
  {
    caller,
    client_info,
    body,
  }: Pick<RouteInput<unknown, unknown, Partial<ServerSettings>>, 'caller' | 'client_info' | 'body'>,
): Promise<ServerSettings> =>
  writeAs(context, caller, async tx => {
    const stored = await readSettings(tx)
    const changed = { ...stored, ...body }
    const fields = Object.keys(body).filter(
      name => changed[name as keyof ServerSettings] !== stored[name as keyof ServerSettings],
    )
    if (fields.length === 0) return stored
    await putSetting(tx, NAME, changed, context.clock.now())
    await record(context, tx, {
      type: 'admin.settings_changed',
      actor: { id: caller.id, email: caller.email },
      target_id: NAME,
      target_type: 'settings',
      organization_id: DEFAULT_ORGANIZATION,
      client_info,
      metadata: { fields },
    })
    return changed
  })

/** Returns the admin routes of the server's settings. */
export const settingsRoutes = (context: Context): AdminRoute[] => [
  route({
    id: 'getSettings',
    method: 'GET',
    path: '/settings',
    permission: 'settings:read',
    instance_only: true,
    summary: 'Get the settings of the server',
    status: 200,
    answer: ServerSettings,
    read: readSettings,
  }),
  route({
    id: 'updateSettings',
    method: 'PUT',
    path: '/settings',
    permission: 'settings:update',
    instance_only: true,
    summary: 'Change settings of the server; omitted ones stay unchanged',
    body: UpdateServerSettings,
    status: 200,
    answer: ServerSettings,
    handle: input => update(context, input as Parameters<typeof update>[1]),
  }),
]
