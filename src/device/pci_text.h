/**
 * @file
 * Addresses and classes of PCI devices, as hwloc writes them.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef MEMEST_DEVICE_PCI_TEXT_H
#define MEMEST_DEVICE_PCI_TEXT_H

#include "base/xml_reader.h"

#include <stdbool.h>
#include <stdint.h>

/** `0000:12:00.0`: domain, bus, device, function, in the order of addresses.
 *  @return is it one? Local. */
bool me_pci_address_read(me_xml_span span, uint64_t *address_out);

/** `0302 [10de:2330] …`: class, vendor and device. @return is it one? Local. */
bool me_pci_class_read(me_xml_span span, uint32_t *class_out,
                       uint32_t *vendor_out);

#endif /* MEMEST_DEVICE_PCI_TEXT_H */
