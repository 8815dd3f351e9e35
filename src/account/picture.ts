import type { Context } from '#src/context.ts'
import { setPicture } from '#src/directory/users/picture.ts'
import { recordUser } from '#src/directory/users/record.ts'
import { seeOther } from '#src/http/answer.ts'
import { readUpload } from '#src/http/body.ts'
import type { Call } from '#src/http/call.ts'
import { loginHash } from '#src/http/cookies.ts'
import { PageError } from '#src/pages/error-page.ts'
import { cleanPhoto } from '#src/pages/photo.ts'
import { listLogins } from '#src/sessions/logins.ts'
import { chargeBrowser } from '#src/sign-in/known-browsers.ts'
import { profilePage, typedProfile } from './profile.ts'
import { openForm, ownPath, permit, viewerOf } from './viewer.ts'

/** Stores the uploaded picture of the user, or removes the stored one (`remove`). */
export const postPicture =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    // The login is checked before the body is read, so a stranger's file costs nothing.
    const hash = loginHash(context, call.request)
    const logins = hash ? await context.store.read(q => listLogins(context, q, hash)) : []
    if (logins.length === 0)
      throw new PageError('expired', 403, { retry_url: ownPath(call, '/account/profile') })
    let file: Buffer | undefined
    const { viewer, form } = await openForm(context, call, async request => {
      const upload = await readUpload(request)
      file = upload.files.get('picture')
      return upload.form
    })
    permit(viewer, 'profile:update')
    const { user } = viewer
    await chargeBrowser(context, call, { organization_id: user.organization_id, kind: 'commit' })
    const by = { actor: { id: user.id, email: user.email }, client_info: call }
    const { typed, differs } = typedProfile(context, viewer, form)
    const isRemoved = form.has('remove')
    const picture = isRemoved ? undefined : file?.length ? cleanPhoto(file) : 'form'
    if (typeof picture === 'string') {
      if (picture !== 'form')
        await context.store.write(tx =>
          recordUser(context, tx, by, 'user.picture_refused', user, { reason: picture }),
        )
      return profilePage(context, call, viewer, { ...typed, picture_error: picture })
    }
    await setPicture(context, user.id, picture, by)
    const notice = isRemoved ? 'picture_removed' : 'picture_saved'
    if (!differs) return seeOther(ownPath(call, `/account/profile?notice=${notice}`))
    const current = await viewerOf(context, viewer.login_hash, viewer.login)
    return profilePage(context, call, current, { ...typed, notice }, { status: 200 })
  }
