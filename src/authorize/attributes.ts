import type { Context } from '#src/context.ts'
import { readAttributes } from '#src/directory/users/attribute-form.ts'
import { updateUser } from '#src/directory/users/service.ts'
import type { Call } from '#src/http/call.ts'
import { PageError } from '#src/pages/error-page.ts'
import { advance, decide, isStale } from './advance.ts'
import { attributesPage, findMissing } from './attributes-page.ts'
import { chooseLogin, openStep } from './flow.ts'

/**
 * Stores required attributes. The user needs no permission, because the organization asks for the attributes.
 */
export const postAttributes =
  (context: Context) =>
  async (call: Call): Promise<Response> => {
    const { browser, flow: opened, form, login_id } = await openStep(context, call, 'attributes')
    const flow = chooseLogin(opened, login_id)
    const next = await decide(context, browser, flow)
    if (isStale(next, login_id)) return advance(context, browser, opened, 'post')
    if (next.step !== 'attributes' || next.login.id !== login_id) throw new PageError('expired', 400)
    const { user, missing } = await findMissing(context, flow, next.login)
    const { changes, errors } = readAttributes(missing, user.attributes, form)
    if (Object.keys(errors).length > 0)
      return attributesPage(context, browser, flow, next.login, { form, errors })
    const by = { actor: { id: user.id, email: user.email }, client_info: call }
    await updateUser(context, user.id, { own_attributes: changes }, by)
    return advance(context, browser, flow, 'post')
  }
