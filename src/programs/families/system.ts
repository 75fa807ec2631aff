import { type ProgramRow, programs } from '../behaviour.ts';

/** Programs that look after processes and machines without being refused outright. */
export const SYSTEM: readonly ProgramRow[] = [
  ...programs(
    'renice sync timedatectl hostnamectl localectl loginctl busctl dbus-send gdbus gsettings dconf wall write mesg xhost xrandr setterm chvt openvt loadkeys',
    'high',
    'local',
    {
      operands: 'none',
    },
  ),
  ...programs('logger', 'high', 'local', { operands: 'none', grammar: { open: true, network: 'n server' } }),
  ...programs('xdotool xte ydotool wmctrl gnome-terminal xterm konsole', 'high', 'unknown', {
    operands: 'none',
  }),
];
