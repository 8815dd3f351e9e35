import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useAction } from './action.ts'
import { ApiForm } from './api-form.tsx'
import { curlOf } from './curl.ts'
import { Dialog } from './dialogs.tsx'
import { OrganizationField } from './organization-field.tsx'
import { AsCurl, Refused } from './parts.tsx'
import { words } from './words.ts'

/** Shows a short form in a dialog. The form creates an object by POST, or changes an object by PUT. */
export const NewDialog = <T,>(props: {
  title: string
  path: string
  method?: 'POST' | 'PUT'
  body: object
  onMade(made: T): void
  onClose(): void
  /** Text of the button. Default: the title. */
  action?: string
  /**
   * Id of the organization that is proposed as the owner of the new object. '' means the caller's own
   * organization. If `owner` is undefined, the form has no field for the organization.
   */
  owner?: string
  children: ComponentChildren
}) => {
  const { method = 'POST', path, owner, onClose } = props
  const [organization_id, setOwner] = useState(owner ?? '')
  const body = { ...props.body, ...(organization_id !== '' && { organization_id }) }
  const { run, problem, dialog } = useAction<T>(props.onMade)
  return (
    <Dialog title={props.title} isHeld={dialog.isBusy} onClose={onClose}>
      <ApiForm
        method={method}
        path={path}
        problem={problem}
        onSubmit={() => void run(method, path, undefined, body)}
      >
        {props.children}
        {owner !== undefined && (
          <OrganizationField hint={words.common.ownOrganization} id={owner} onValue={setOwner} />
        )}
        <Refused problem={problem} />
        <AsCurl text={curlOf(method, path, body)} />
        <div class="dialog-actions">
          <button type="button" disabled={dialog.isBusy} onClick={onClose}>
            {words.common.cancel}
          </button>
          <button type="submit" class="primary" disabled={dialog.isBusy}>
            {props.action ?? props.title}
          </button>
        </div>
      </ApiForm>
    </Dialog>
  )
}
