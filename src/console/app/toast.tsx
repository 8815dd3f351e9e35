import { signal } from '@preact/signals'
import { Icon } from './icons.tsx'

const message = signal('')
/** Number of notices so far. The key of a notice, so that the same text is announced again. */
let shown = 0
let timer: ReturnType<typeof setTimeout> | undefined

/** Shows a notice that an action has succeeded. Four seconds are enough to read the few words of a notice. */
export const show = (text: string): void => {
  shown++
  message.value = ''
  message.value = text
  clearTimeout(timer)
  timer = setTimeout(() => {
    message.value = ''
  }, 4_000)
}

/** Removes the current notice, because it belongs to the screen that the person leaves. */
export const hide = (): void => {
  message.value = ''
}

/** Shows the current notice, which screen readers announce. */
export const Toast = () => (
  <div class="toast" role="status">
    {message.value && (
      <p key={shown}>
        <Icon name="check" /> {message.value}
      </p>
    )}
  </div>
)
