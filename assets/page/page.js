import { setUpChat } from './chat.js'
import { setUpCopyButtons } from './copy.js'
import { setUpHidden } from './hidden.js'
import { setUpKeys } from './keys.js'
import { setUpMenus } from './menus.js'
import { setUpProofChecks } from './proof.js'
import { setUpSections } from './sections.js'
import { setUpSince } from './since.js'
import { setUpTimeline } from './year.js'

setUpSections()
setUpMenus()
setUpHidden()
setUpKeys()
setUpCopyButtons()
setUpChat()
setUpSince()
setUpTimeline()
setUpProofChecks()
