import { createHash } from 'node:crypto'
import type { Core } from '#src/context.ts'
import { writeAs } from '#src/http/guard.ts'
import { type AssetType, assetAnswer, SANDBOX_HEADERS } from '#src/pages/asset-answer.ts'
import { type Picture, pictureUri } from '#src/pages/picture.ts'
import type { Queries } from '#src/storage/store.ts'
import { getUserToChange, type UserChangedBy } from './change.ts'
import { findPicture, removePicture, replacePicture } from './picture-store.ts'
import { recordUser } from './record.ts'
import { saveUser } from './store.ts'

const address = /^\/assets\/people\/([0-9a-f]{32})\.(png|jpg|webp)$/

/**
 * Replaces the picture of a user, or removes it when `picture` is undefined. The path contains a hash of the
 * user id and the picture, so it does not reveal who else has the same picture.
 *
 * @throws AppError 404 when the user is unknown or of another organization, 403 when the user has permissions
 * that the caller lacks
 */
export const setPicture = (
  context: Core,
  id: string,
  picture: Picture | undefined,
  by: UserChangedBy,
): Promise<void> =>
  writeAs(context, by.caller, async tx => {
    const user = await getUserToChange(tx, by, id)
    if (!picture && !user.picture) return
    let path: string | null = null
    if (picture) {
      const { type, bytes: body } = picture
      const hash = createHash('sha256')
        .update(`${user.id}\n${type}\n`)
        .update(body)
        .digest('hex')
        .slice(0, 32)
      path = `/assets/people/${hash}.${type}`
      if (path === user.picture) return
      await replacePicture(tx, { user_id: user.id, organization_id: user.organization_id, hash, type, body })
    } else await removePicture(tx, user.id)
    await saveUser(tx, { ...user, picture: path, updated_at: context.clock.now() })
    await recordUser(context, tx, by, 'user.updated', user, { fields: ['picture'] })
  })

const readByPath = async (q: Queries, path: string) => {
  const [, hash, type] = address.exec(path) ?? []
  return hash && type ? findPicture(q, { hash, type }) : undefined
}

/** Returns the picture at a path as a data URI. */
export const pictureContent = async (q: Queries, path: string): Promise<string | undefined> => {
  const found = await readByPath(q, path)
  return found && pictureUri({ type: found.type, bytes: found.body })
}

/**
 * Returns the response for the path of a picture. Returns undefined when the path is unknown. Pages of other
 * origins may show the picture, because applications get its address (claim `picture`).
 */
export const userPicture = async ({ store }: Core, path: string): Promise<Response | undefined> => {
  if (!address.test(path)) return undefined
  const found = await store.read(q => readByPath(q, path))
  return (
    found &&
    assetAnswer(new Uint8Array(found.body), found.type as AssetType, {
      ...SANDBOX_HEADERS,
      // One day, so that a browser shows a removed picture for at most a day.
      'cache-control': 'public, max-age=86400',
      'cross-origin-resource-policy': 'cross-origin',
    })
  )
}
